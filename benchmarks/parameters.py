"""The figures behind docs/scale.md: measured here, assumed of AWS, set by default, or list prices.

With better figures, of an account or another machine, change them here and run
`python -m benchmarks.scale` again. It uses what `lakegate probe` measured if that is PROBE.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from functions.model.budget import GB_HOUR, VCPU_HOUR

PROBE = Path(__file__).parents[1] / "docs" / "probe-1.json"


@dataclass(frozen=True)
class Steps:
    """Seconds of a file's steps, measured on two shared cores.

    `upload` is on_upload's work for one file and `record` a commit of results to
    ops.audit_results, by the ledger's times (make bench-steps). `job_file` and `job_megabyte` are
    the job's own in a warm Spark (make bench-append), `session` is a new Spark. `judge` is
    on_job_run's work on an ended run: five calls of 10 ms each, and `report` what each further file
    of a group adds: three. `merge` is a merge without a conflict, `rebase` what a conflict adds,
    `member` what each further file of the rebase adds, and `joined` how long a publish with a
    conflict takes until main has five groups of a hundred files (make bench-publish). `create`,
    `commit`, `merged` and `delete` are how long one request keeps all of Nessie busy: one by the
    files a second that it took (PostgreSQL, docs/benchmarks.md).
    """

    upload: float = 0.15
    session: float = 10.0
    job_file: float = 0.8
    job_megabyte: float = 0.068
    judge: float = 0.05
    report: float = 0.03
    merge: float = 0.04
    rebase: float = 0.11
    member: float = 0.025
    joined: float = 0.57
    record: float = 0.77
    create: float = 1 / 32
    commit: float = 1 / 13
    merged: float = 1 / 29
    delete: float = 1 / 28

    @property
    def nessie(self) -> float:
        """Return how long one file keeps Nessie busy."""
        return self.create + self.commit + self.merged + self.delete

    def file(self, megabytes: float) -> float:
        """Return how long the job works on a file that it ingests alone, by Spark."""
        return self.job_file + self.job_megabyte * megabytes


@dataclass(frozen=True)
class Requests:
    """The requests of one file of one row group, alone in its batch, published without a rebase.

    `writes` are the ledger's write units, `hottest` those of its busiest key, `reads` its read
    units; counted over the fakes by tests/unit/benchmarks/test_scale.py. `puts` (and one LIST) and
    `gets` (and HEAD) are S3's, the job's included, and `nessie` the requests to Nessie: counted on
    the local stack by `make bench-steps`. `messages` are sent, received and deleted in three
    queues.
    `logged` are kilobytes of the functions' logs, a guess.
    """

    writes: int = 29
    hottest: int = 5
    reads: int = 9
    puts: int = 11
    gets: int = 41
    nessie: int = 36
    messages: int = 9
    logged: float = 4.0


@dataclass(frozen=True)
class Shared:
    """A shared run's work on a file of 2 MB that fits its table, and its workers.

    `alone` and `together` are the driver's seconds for a file that arrives alone, and for each
    further file of its group (make bench-append: a group of 100 took 5.3). Its driver takes `vcpus`
    and `gigabytes`, and so does one executor for each run's first minute, since Spark runs no job
    for such files. Of both kinds `requests` are those of each file.
    """

    alone: float = 0.43
    together: float = 0.05
    vcpus: int = 1
    gigabytes: int = 4
    requests_alone: Requests = Requests(writes=24, puts=10, gets=20, nessie=35, messages=12)
    requests_together: Requests = Requests(writes=11, puts=5, gets=3, nessie=4, messages=8)

    def seconds(self, files: int) -> float:
        """Return how long the driver works on a group of so many files."""
        return self.alone + self.together * (files - 1)


@dataclass(frozen=True)
class Turns:
    """A shared run's work on files of 2 MB that come in turns of `files`, which are 64 MiB.

    `merged` are its seconds for a file that is upserted into a table of 1,000,000 rows, `compared`
    for one whose keys are looked up there (make bench-runs, parts g and h, 64 files of 90,000 rows,
    everything else on the same cores). An executor as large as the driver works beside it.
    """

    files: int = 32
    merged: float = 0.99
    compared: float = 0.24


@dataclass(frozen=True)
class Upkeep:
    """The daily function's work on one commit of main within KeepDays.

    It makes `reads` requests to S3 (metadata file, manifest list, new manifests, of which eight
    readers at once read some twice) and takes `seconds` of a processor: 4.2 and 0.008 for each of
    300 states of a table of 20 columns with up to a hundred manifests, from a local server. The
    function has `gigabytes`, and with them one processor.
    """

    reads: int = 4
    seconds: float = 0.008
    gigabytes: float = 2.0


MOST_TOGETHER = 100  # files of a group, and results of a commit to ops.audit_results
A_COMMIT = 500  # files that one commit publishes at most (functions/adapters/ledger/ledger.py)
ITEM = 1060  # bytes of an ingestion in the ledger while its job runs (counted by test_scale.py)


@dataclass(frozen=True)
class Aws:
    """Assumptions about AWS, each with its source.

    `cold` is how long a run waits for its workers, `warm` if workers are kept warm ("Pre-
    initialized capacity" says seconds; for cold workers AWS gives no figure, one to two minutes
    are reported). StartJobRun takes `starts` requests a second, and `starts_at_once` after a
    pause ("Endpoints and quotas": 1 and 25). `account_vcpus` is the account's vCPUs at a time
    (16 is a new account's; Service Quotas shows both limits and raises them). `lambdas` is the
    account's concurrent executions ("Lambda quotas": 1,000). `page` is how long DynamoDB reads
    a megabyte of an index, as each publish does to find others of its table, `listing` what S3
    takes for a thousand versions and `lookup` what DynamoDB takes for a hundred items
    (guesses).
    """

    cold: float = 75.0
    warm: float = 3.0
    starts: float = 1.0
    starts_at_once: int = 25
    account_vcpus: int = 16
    lambdas: int = 1000
    page: float = 0.03
    listing: float = 0.2
    lookup: float = 0.015

    @classmethod
    def known(cls, probe: Path = PROBE) -> "Aws":
        """Return the assumptions, with the times of `lakegate probe` instead where its file is."""
        if not probe.exists():
            return cls()
        run = json.loads(probe.read_text())["runs"][0]
        return cls(cold=run["seconds"]["created_to_first_line"])


@dataclass(frozen=True)
class Settings:
    """A deployment's settings; the defaults are the templates'.

    `upload_lambdas` is UploadConcurrency, `runs` is ConcurrentRuns, `vcpus` MaximumCpu; the driver
    and the executor of a run of full size take `run_vcpus` and `run_gigabytes`, those of a file of
    at most `small_megabytes` take `small_vcpus` and `small_gigabytes`. A shared run ends after
    `idle` seconds (RunIdleSeconds) without a file. `sweep` and `grace` are seconds.
    """

    upload_lambdas: int = 2
    sweep: float = 300.0
    grace: float = 300.0
    runs: int = 8
    vcpus: int = 64
    run_vcpus: int = 8
    run_gigabytes: int = 32
    small_megabytes: float = 32.0
    small_vcpus: int = 2
    small_gigabytes: int = 8
    idle: float = 60.0

    def workers(self, megabytes: float) -> tuple[int, int]:
        """Return the vCPUs and gigabytes of a run that reads so much."""
        if megabytes <= self.small_megabytes:
            return self.small_vcpus, self.small_gigabytes
        return self.run_vcpus, self.run_gigabytes

    def at_once(self, aws: Aws) -> int:
        """Return how many job runs there can be at a time."""
        return max(1, min(self.runs, min(self.vcpus, aws.account_vcpus) // self.run_vcpus))


# List prices in US dollars, ARM64 for EMR Serverless: check them at https://aws.amazon.com/pricing/
# before you rely on them. None was read from a bill.
DATE = "2026-11-21"
REGION = "us-east-1"
HOURS = 730  # a month


@dataclass(frozen=True)
class Prices:
    """The list price of one unit each; `_m` is for a million."""

    emr_vcpu_hour: float = VCPU_HOUR
    emr_gb_hour: float = GB_HOUR
    lambda_request_m: float = 0.20
    lambda_gb_second: float = 0.0000166667
    dynamodb_write_m: float = 0.625  # on demand, since November 2024
    dynamodb_read_m: float = 0.125
    sqs_request_m: float = 0.40
    event_m: float = 1.00
    s3_put_m: float = 5.00  # also POST, COPY and LIST
    s3_get_m: float = 0.40  # and all others
    s3_gb_month: float = 0.023
    logs_gb: float = 0.50
    # by the hour, whatever lands
    fargate_vcpu_hour: float = 0.03238  # ARM
    fargate_gb_hour: float = 0.00356
    load_balancer_hour: float = 0.0225
    zone_month: float = 0.50  # in Route 53
    database_hour: float = 0.016  # db.t4g.micro, PostgreSQL, one zone
    database_gb_month: float = 0.115
    endpoint_hour: float = 0.01  # an interface endpoint in one zone
    address_hour: float = 0.005  # a public IPv4 address
    alarm_month: float = 0.10
    dashboard_month: float = 3.00  # an account's first three are free
    metric_month: float = 0.30
    image_gb_month: float = 0.10  # in ECR; the image's size is an assumption
    secret_month: float = 0.40


PRICES = Prices()
