"""Lambda: the queue of EMR's job run changes, and of what shared runs judged.

Publishes passed ingestions, alerts on failures.
"""

from functions.adapters.all import Adapters
from functions.notifications.missing_rights import telling
from functions.pipeline.outcome.audit_history import record_recent
from functions.pipeline.start.events import ended_run, judged_files
from functions.pipeline.verdict.complete import conclude, judge
from functions.pipeline.verdict.judged import conclude_judged, record_judged
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters_of_batch


def job_run(adapters: Adapters, body: str) -> None:
    """Complete the ingestions of a job run that has ended, or of files that a shared run judged."""
    with telling(adapters):
        if judged := judged_files(body):
            conclude_judged(adapters, judged)
        else:
            conclude(adapters, ended_run(body))


def job_run_judged(adapters: Adapters, body: str) -> None:
    """Only record the verdicts, so that passed ingestions are published together."""
    if judged := judged_files(body):
        record_judged(adapters, judged)
    else:
        judge(adapters, ended_run(body))


handler = sqs_handler(job_run, adapters_of_batch, first=job_run_judged, last=record_recent)
