"""Entry point of the job run: `main.py <job spec as JSON>`, or a shared run's input as JSON.

The exit code is 0 only if the audit passed, so that a consumer of the exit code alone never
publishes unaudited data. The report explains every other final state; a crash leaves no report.
A shared run ends with 0: its messages name the reports of its files.
"""

import sys
import time

from lakegate.audit.report import Verdict
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import SharedRun
from lakegate.text import one_line
from spark_jobs.changes.compact import compact
from spark_jobs.lake.storage import Storage
from spark_jobs.run.attempt import carry_out, wait_for_token
from spark_jobs.run.probe import probe
from spark_jobs.shared.serve import serve
from spark_jobs.shared.serving import connect
from spark_jobs.shared.work_queue import SqsQueues
from spark_jobs.spark.session import open_session

EXIT_CODES = {Verdict.PASSED: 0, Verdict.REJECTED: 3, Verdict.ERRORED: 4}


def main(argument: str) -> int:
    """Execute one job run; return its exit code."""
    began = time.time()
    shared = SharedRun.from_argument(argument)
    if shared:
        serve(shared, SqsQueues.connect(shared), connect(shared))
        return 0
    spec = JobSpec.from_argument(argument)
    storage = Storage.connect(spec)
    if spec.probe:
        probe(spec, storage, began)
        return 0
    token = wait_for_token(spec, storage.nessie_token)
    if spec.compact:
        compact(spec, storage, token, open_session)
        return 0
    report = carry_out(spec, storage, token, open_session)
    why = report.reason.message if report.reason else "all checks hold"
    print(one_line(f"{report.verdict}: {why}"))
    return EXIT_CODES[report.verdict]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
