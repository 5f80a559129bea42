"""Lambda: the queue of EMR's job run changes. Publishes what passed, alerts on failures."""

from functions.adapters.all import Adapters
from functions.pipeline.audit_history import record_recent
from functions.pipeline.complete import conclude, judge
from functions.pipeline.events import ended_run
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters


def job_run(adapters: Adapters, body: str) -> None:
    """Conclude the job run whose change of state an EventBridge event tells."""
    conclude(adapters, ended_run(body))


def job_run_judged(adapters: Adapters, body: str) -> None:
    """Only judge the job run: what passed waits, and is published together with the others."""
    judge(adapters, ended_run(body))


handler = sqs_handler(job_run, adapters, first=job_run_judged, last=record_recent)
