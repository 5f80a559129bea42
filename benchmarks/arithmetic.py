"""What files cost and where the limits lie, computed from prices, counts and measured times."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.parameters import ITEM, Aws, Requests, Settings, Steps
from benchmarks.prices import HOURS, PRICES
from benchmarks.simulation import MOST_TOGETHER

MILLION = 1_000_000
_LAMBDA_GIGABYTES = 0.5
ENDPOINTS, ALARMS, _SECRETS = 4, 22, 7
_SHORTEST_RUN = 60.0  # seconds that a worker is charged for at least ("EMR Serverless pricing")
_PARTITION = 1000  # write units a second of one key ("Best practices for partition keys")
_MOST_SHARED = 50
_PUTS = 3500  # a second and prefix ("Best practices design patterns: optimizing S3 performance")
QUEUE_MINUTES = 360  # QueueTimeoutMinutes as shipped
_SLACK = 1  # messages a second and channel (Slack, "Rate limits", chat.postMessage)


@dataclass(frozen=True)
class Line:
    """One line of a bill: a quantity of something at a price, for so many files."""

    what: str
    quantity: float
    unit: str
    price: float

    @property
    def dollars(self) -> float:
        """Quantity times price."""
        return self.quantity * self.price


STEPS, AWS, SETTINGS, REQUESTS = Steps(), Aws(), Settings(), Requests()


def run_seconds(files: float = 1, megabytes: float = 2.0) -> float:
    """How long the workers of one job run work, waiting for them apart."""
    each = STEPS.job_file + STEPS.job_megabyte * megabytes
    return STEPS.session + files * each


def run_dollars(seconds: float) -> float:
    """What one job run costs on EMR Serverless."""
    hours = max(seconds, _SHORTEST_RUN) / 3600
    vcpus = SETTINGS.run_vcpus * PRICES.emr_vcpu_hour
    return hours * (vcpus + SETTINGS.run_gigabytes * PRICES.emr_gigabyte_hour)


def warm_dollars() -> float:
    """What workers cost that are kept warm for one run, an hour."""
    return run_dollars(3600)


def bill(files: int = 1, megabytes: float = 2.0, files_a_run: int = 1) -> list[Line]:
    """What so many files of that size cost, but for what costs by the hour."""
    seconds = max(run_seconds(files_a_run, megabytes), _SHORTEST_RUN) * files / files_a_run
    busy = STEPS.upload + STEPS.judge + STEPS.merge + STEPS.record
    gigabytes = files * megabytes / 1024
    asked = REQUESTS
    return [
        Line(
            "EMR Serverless, vCPUs",
            SETTINGS.run_vcpus * seconds / 3600,
            "vCPU hours",
            PRICES.emr_vcpu_hour,
        ),
        Line(
            "EMR Serverless, memory",
            SETTINGS.run_gigabytes * seconds / 3600,
            "GB hours",
            PRICES.emr_gigabyte_hour,
        ),
        Line(
            "DynamoDB, writes", files * asked.writes / MILLION, "million", PRICES.dynamodb_write_m
        ),
        Line("DynamoDB, reads", files * asked.reads / MILLION, "million", PRICES.dynamodb_read_m),
        Line("S3, PUT and LIST", files * asked.puts / MILLION, "million", PRICES.s3_put_m),
        Line("S3, GET", files * asked.gets / MILLION, "million", PRICES.s3_get_m),
        Line("SQS", files * asked.messages / MILLION, "million", PRICES.sqs_request_m),
        Line("EventBridge", files / MILLION, "million", PRICES.event_m),
        Line("Lambda, requests", files * 3 / MILLION, "million", PRICES.lambda_request_m),
        Line(
            "Lambda, time",
            files * busy * _LAMBDA_GIGABYTES,
            "GB seconds",
            PRICES.lambda_gigabyte_second,
        ),
        Line("Logs", files * asked.logged / MILLION, "GB", PRICES.logs_gigabyte),
        Line("S3, kept a month twice", 2 * gigabytes, "GB months", PRICES.s3_gigabyte_month),
    ]


def by_the_hour() -> list[Line]:
    """What a month costs in which nothing lands."""
    return [
        Line("Nessie: 2 tasks, vCPUs", 2 * 0.5 * HOURS, "vCPU hours", PRICES.fargate_vcpu_hour),
        Line("Nessie: 2 tasks, memory", 2 * 2 * HOURS, "GB hours", PRICES.fargate_gigabyte_hour),
        Line("Nessie: load balancer", HOURS, "hours", PRICES.load_balancer_hour),
        Line("Nessie: PostgreSQL", HOURS, "hours", PRICES.database_hour),
        Line("Nessie: its 20 GB", 20, "GB months", PRICES.database_gigabyte_month),
        Line("interface endpoints in one zone", ENDPOINTS * HOURS, "hours", PRICES.endpoint_hour),
        Line("Nessie: 2 public addresses, for its image", 2 * HOURS, "hours", PRICES.address_hour),
        Line("alarms", ALARMS, "alarms", PRICES.alarm_month),
        Line("secrets", _SECRETS, "secrets", PRICES.secret_month),
    ]


@dataclass(frozen=True)
class Limit:
    """How many files a minute a place lets through, and what widens it."""

    where: str
    why: str
    a_minute: float
    turn: str


def limits() -> list[Limit]:
    """Where files pile up first, the narrowest place first."""
    found = (*_job_limits(), *_function_limits(), *_store_limits())
    return sorted(found, key=lambda limit: limit.a_minute)


def _job_limits() -> Iterator[Limit]:
    run = AWS.cold + run_seconds()
    quotas = (
        ("vCPU quota of a new account", SETTINGS.at_once(AWS), "ask AWS for more"),
        (
            "MaximumCpu as shipped",
            SETTINGS.vcpus // SETTINGS.run_vcpus,
            "MaximumCpu, MaximumMemory",
        ),
        ("ConcurrentRuns as shipped", SETTINGS.runs, "ConcurrentRuns"),
        ("ConcurrentRuns at most", 1000, "share runs; a second application"),
    )
    for where, runs, turn in quotas:
        yield Limit(where, f"{runs:,} runs of {run:.0f} s", 60 * runs / run, turn)
    starts = f"{AWS.starts:.0f} a second (assumed)"
    yield Limit("StartJobRun", starts, 60 * AWS.starts, "ask AWS for more; share runs")


def _function_limits() -> Iterator[Limit]:
    upload, record = STEPS.upload + STEPS.create, STEPS.record
    commit = STEPS.merge + STEPS.rebase + STEPS.member * (MOST_TOGETHER - 1)
    whole = upload + STEPS.judge + commit / MOST_TOGETHER + record / MOST_TOGETHER
    at_once = SETTINGS.upload_lambdas
    yield Limit(
        "on_upload as shipped",
        f"{at_once} at a time, {upload:.2f} s a file",
        60 * at_once / upload,
        "UploadConcurrency",
    )
    yield Limit(
        "one table",
        f"{MOST_TOGETHER} files a commit of {commit:.1f} s, one after the other",
        60 * MOST_TOGETHER / commit,
        "nothing yet: land in several tables",
    )
    yield Limit(
        "ops.audit_results",
        f"{MOST_TOGETHER} files a commit of {record:.2f} s",
        60 * MOST_TOGETHER / record,
        "nothing yet; no file waits for it",
    )
    lambdas = f"{AWS.lambdas:,} at a time, {whole:.2f} s a file"
    yield Limit("Lambda, the account", lambdas, 60 * AWS.lambdas / whole, "ask AWS for more")


def _store_limits() -> Iterator[Limit]:
    yield Limit(
        "Nessie as measured here",
        f"{STEPS.nessie * 1000:.0f} ms of all of it a file",
        60 / STEPS.nessie,
        "a larger machine for it and its PostgreSQL",
    )
    yield Limit(
        "the ledger's busiest key",
        f"{REQUESTS.hottest} of {_PARTITION:,} write units a second",
        60 * _PARTITION / REQUESTS.hottest,
        "nothing yet: spread the key `unfinished`",
    )
    yield Limit(
        "S3, one prefix",
        f"{REQUESTS.puts} of {_PUTS:,} PUTs a second",
        60 * _PUTS / REQUESTS.puts,
        "S3 splits prefixes by itself, in minutes",
    )
    yield Limit(
        "files that fail, one Slack channel",
        f"{_SLACK} message a second",
        60 * _SLACK,
        "a channel a contract",
    )


def queued_in_vain() -> int:
    """How many job runs may wait as shipped before the last of them times out in EMR's queue."""
    runs = SETTINGS.at_once(Aws(account_vcpus=MILLION))
    return int(runs * 60 * QUEUE_MINUTES / (AWS.cold + run_seconds()))


def sharing(rate: float, megabytes: float = 2.0) -> tuple[float, float]:
    """Files a run, and dollars for a million files, where files of one table share job runs.

    `rate` is the table's files a minute: the first one waits `linger` seconds for others.
    """
    files = min(1 + rate * SETTINGS.linger / 60, _MOST_SHARED)
    return files, run_dollars(run_seconds(files, megabytes)) / files * MILLION


def search(in_flight: int) -> tuple[float, float]:
    """Read units and megabytes of the ledger that one publish looks through.

    It asks by state who goes first and who waits, of all tables
    (functions/pipeline/table_queue.py).
    """
    read = in_flight * ITEM
    return read / 4096 / 2, read / 2**20


def swept(kept: int) -> tuple[float, float]:
    """Seconds of one sweep, and dollars of a month of sweeps, over so many landed versions.

    It lists the whole landing bucket and looks each version up in the ledger
    (functions/sweep.py).
    """
    thousands = kept / 1000
    seconds = thousands * (AWS.listing + 10 * AWS.lookup)
    dollars = thousands * (PRICES.s3_put_m + 500 * PRICES.dynamodb_read_m) / MILLION
    return seconds, dollars * HOURS * 3600 / SETTINGS.sweep


def total(lines: Sequence[Line]) -> float:
    """The sum of a bill."""
    return sum(line.dollars for line in lines)
