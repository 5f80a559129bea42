"""What the simulation and the arithmetic go by: measured here, assumed of AWS, or set by people.

Whoever has better figures (an account, another machine) changes them here and runs both again.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Steps:
    """What a file's steps take, in seconds; measured on two shared cores.

    `upload` is on_upload's work for one file and `record` a commit of results to
    ops.audit_results, by the ledger's times (make bench-steps). `job_file` and
    `job_megabyte` are the job's own in a warm Spark (make bench-append), `session` is a new Spark.
    `judge` is on_job_run's look at an ended run: five calls, each taken for 10 ms. `merge` is a
    publish that main takes as it is, `rebase` what it costs more where main refuses, `member` each
    further file that goes along (make bench-publish).
    `create`, `commit`, `merged` and `delete` are how long one request of the kind keeps the whole
    of Nessie busy: one by the files a second that it took (make bench-nessie, PostgreSQL).
    """

    upload: float = 0.15
    session: float = 10.0
    job_file: float = 0.8
    job_megabyte: float = 0.068
    judge: float = 0.05
    merge: float = 0.04
    rebase: float = 0.11
    member: float = 0.025
    record: float = 0.77
    create: float = 1 / 32
    commit: float = 1 / 13
    merged: float = 1 / 29
    delete: float = 1 / 28

    @property
    def nessie(self) -> float:
        """How long one file keeps Nessie busy."""
        return self.create + self.commit + self.merged + self.delete


@dataclass(frozen=True)
class Requests:
    """What one file of one row group asks for, alone in its batch, published without a rebase.

    `writes` are the ledger's write units, `hottest` those of its busiest key, `reads` its read
    units; counted over the fakes by tests/unit/benchmarks/test_scale.py. `puts` (and one LIST) and
    `gets` are S3's, the job's included, and `nessie` the requests to Nessie: counted on the local
    stack by
    `make bench-steps`. `messages` are sent, received and deleted in three queues.
    `logged` are kilobytes of the functions' logs, a guess.
    """

    writes: int = 100
    hottest: int = 20
    reads: int = 8
    puts: int = 11
    gets: int = 31
    nessie: int = 36
    messages: int = 9
    logged: float = 4.0


ITEM = (
    1300  # bytes of an ingestion in the ledger whose job runs (tests/unit/benchmarks/test_scale.py)
)


@dataclass(frozen=True)
class Aws:
    """What AWS does by itself; assumptions, each with its source.

    `event` is from a change to its message in a queue (seconds, commonly seen). `cold` is what a
    run waits for its workers where none is warm, `warm` where some are ("Pre-initialized capacity":
    one says seconds, of the other AWS gives no figure: commonly one to two minutes are reported).
    `starts` is StartJobRun's requests a second and `account_vcpus` the account's vCPUs at a time
    (Service Quotas shows both and raises them; 16 vCPUs is a new account's). `lambdas` is the
    account's concurrent executions ("Lambda quotas": 1,000). `page` is how long DynamoDB looks
    through a megabyte of an index, as each publish does for who else is on the way, `listing` what
    S3 takes for a thousand versions and `lookup` what DynamoDB takes for a hundred items (guesses).
    """

    event: float = 1.0
    cold: float = 75.0
    warm: float = 3.0
    starts: float = 10.0
    account_vcpus: int = 16
    lambdas: int = 1000
    page: float = 0.03
    listing: float = 0.2
    lookup: float = 0.015


@dataclass(frozen=True)
class Settings:
    """What a deployment sets; these defaults are the templates'.

    `upload_batch` and `run_batch` are the mappings' BatchSize, `upload_lambdas` and `run_lambdas`
    UploadConcurrency and JobRunConcurrency. `runs` is ConcurrentRuns, `vcpus` MaximumCpu;
    a run's driver and executors take `run_vcpus` and `run_gigabytes`. `warm_runs` is for how many
    runs workers are kept warm. `nessie` is how many times as much as the one measured here the
    deployment's Nessie takes. `files_a_run` files of one table share a run, each waiting at most
    `linger` seconds for the others: 1 is what Lakegate does today.
    """

    upload_batch: int = 5
    upload_lambdas: int = 2
    run_batch: int = 10
    run_lambdas: int = 2
    visibility: float = 360.0
    receives: int = 5
    sweep: float = 300.0
    grace: float = 300.0
    runs: int = 15
    vcpus: int = 64
    run_vcpus: int = 8
    run_gigabytes: int = 32
    warm_runs: int = 0
    nessie: float = 1.0
    files_a_run: int = 1
    linger: float = 60.0

    def at_once(self, aws: Aws) -> int:
        """How many job runs there can be at a time."""
        return max(1, min(self.runs, min(self.vcpus, aws.account_vcpus) // self.run_vcpus))


@dataclass(frozen=True)
class Load:
    """Files that land: `rate` a minute, in bursts of `burst` at once, over so many `tables`.

    `failing` of all messages' deliveries fail for a passing reason; `lost` of the job runs' events
    never come.
    """

    rate: float
    minutes: float
    tables: int = 1
    burst: int = 1
    megabytes: float = 2.0
    failing: float = 0.001
    lost: float = 0.001
