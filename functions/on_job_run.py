"""Lambda: the queue of EMR Serverless's state changes. Publishes, or tells people why not."""

from functions.pipeline.audit_history import record_recent
from functions.sqs_handler import job_run, job_run_judged, sqs_handler
from functions.wiring import adapters

handler = sqs_handler(job_run, adapters, first=job_run_judged, last=record_recent)
