"""Lambda: the queue of EMR's job run changes. Publishes passed ingestions, alerts on failures."""

from functions.adapters.all import Adapters
from functions.pipeline.audit_history import record_recent
from functions.pipeline.complete import conclude, judge
from functions.pipeline.events import ended_run
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters


def job_run(adapters: Adapters, body: str) -> None:
    """Complete the job run whose change of state an EventBridge event reports."""
    conclude(adapters, ended_run(body))


def job_run_judged(adapters: Adapters, body: str) -> None:
    """Only record the job run's verdict, so that passed ingestions are published together."""
    judge(adapters, ended_run(body))


handler = sqs_handler(job_run, adapters, first=job_run_judged, last=record_recent)
