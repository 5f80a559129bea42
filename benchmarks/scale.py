"""Compute the figures of docs/scale.md; `python -m benchmarks.scale` writes them into it.

In the page each block stands between `<!-- name -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import schedule_costs
from benchmarks.parameters import (
    A_COMMIT,
    DATE,
    HOURS,
    MOST_TOGETHER,
    PRICES,
    REGION,
    Aws,
    Requests,
    Settings,
    Shared,
    Steps,
    Turns,
)

DOCUMENT = Path(__file__).parents[1] / "docs" / "scale.md"
ENDPOINTS, ALARMS, _SECRETS = 4, 40, 7
QUEUE_MINUTES = 360  # QueueTimeoutMinutes as shipped
STEPS, AWS, SETTINGS, REQUESTS, SHARED = Steps(), Aws.known(), Settings(), Requests(), Shared()
_MILLION = 1_000_000
_LAMBDA_GB = 0.5
_SHORTEST_RUN = 60.0  # seconds that a worker is charged for at least ("EMR Serverless pricing")
_PARTITION = 1000  # write units a second of one key ("Best practices for partition keys")
_PUTS = 3500  # a second and prefix ("Best practices design patterns: optimizing S3 performance")
_PLENTY = 10_000  # files a minute: what lets more through is not shown

Block = Callable[[], Iterator[str]]


class Line(NamedTuple):
    """One line of a bill: a quantity of something and the price of one unit."""

    name: str
    quantity: float
    unit: str
    price: float

    @property
    def dollars(self) -> float:
        """Return quantity times price."""
        return self.quantity * self.price


def total(lines: Sequence[Line]) -> float:
    """Return the sum of a bill."""
    return sum(line.dollars for line in lines)


def run_seconds(files: float = 1, megabytes: float = 2.0) -> float:
    """Return how long a job run's workers work, without the time until they are there."""
    return STEPS.session + files * STEPS.file(megabytes)


def run_dollars(seconds: float, megabytes: float = 2.0) -> float:
    """Return what a job run of so many megabytes costs on EMR Serverless."""
    vcpus, memory = SETTINGS.workers(megabytes)
    an_hour = vcpus * PRICES.emr_vcpu_hour + memory * PRICES.emr_gb_hour
    return max(seconds, _SHORTEST_RUN) / 3600 * an_hour


def bill(files: int = 1, megabytes: float = 2.0) -> list[Line]:
    """Return what so many files of that size cost with a run each, without what is by the hour."""
    hours = files * max(run_seconds(1, megabytes), _SHORTEST_RUN) / 3600
    vcpus, memory = SETTINGS.workers(megabytes)
    lambdas = STEPS.upload + STEPS.judge + STEPS.merge + STEPS.record
    return [*_emr(vcpus, memory, hours), *_others(REQUESTS, files, megabytes, lambdas)]


def shared_bill(files: int, group: int, turn: float = 0.0) -> list[Line]:
    """Return what files of 2 MB in shared runs cost, which land evenly over a month in groups.

    A run is up while files come, and until it was idle for long. Files that come in turns, of which
    each takes `turn` seconds, also take an executor for so long.
    """
    asked = SHARED.requests_alone if group == 1 else SHARED.requests_together
    works = group * turn or SHARED.seconds(group)
    hours = up(files, group, works) + files * turn / 3600
    lambdas = STEPS.upload + (STEPS.judge + STEPS.merge + STEPS.record) / group
    workers = SHARED.vcpus, SHARED.gigabytes
    return [*_emr(*workers, hours), *_others(asked, files, 2.0, lambdas)]


def up(files: int, group: int, seconds: float) -> float:
    """Return the hours of a month in which a run is up that works so long on each group."""
    return min(HOURS, files / group * (SETTINGS.idle + seconds) / 3600)


def _emr(vcpus: int, memory: int, hours: float) -> list[Line]:
    return [
        Line("EMR Serverless, vCPUs", vcpus * hours, "vCPU hours", PRICES.emr_vcpu_hour),
        Line("EMR Serverless, memory", memory * hours, "GB hours", PRICES.emr_gb_hour),
    ]


def _others(asked: Requests, files: int, megabytes: float, lambdas: float) -> list[Line]:
    """Return what files cost beside EMR, given the seconds of Lambdas for each."""
    millions, price = files / _MILLION, PRICES
    gigabytes, seconds = files * megabytes / 1024, files * lambdas
    return [
        Line("DynamoDB, writes", asked.writes * millions, "million", price.dynamodb_write_m),
        Line("DynamoDB, reads", asked.reads * millions, "million", price.dynamodb_read_m),
        Line("S3, PUT and LIST", asked.puts * millions, "million", price.s3_put_m),
        Line("S3, GET and HEAD", asked.gets * millions, "million", price.s3_get_m),
        Line("SQS", asked.messages * millions, "million", price.sqs_request_m),
        Line("EventBridge", millions, "million", price.event_m),
        Line("Lambda, requests", 3 * millions, "million", price.lambda_request_m),
        Line("Lambda, time", _LAMBDA_GB * seconds, "GB seconds", price.lambda_gb_second),
        Line("Logs", asked.logged * millions, "GB", price.logs_gb),
        Line("S3, kept a month twice", 2 * gigabytes, "GB months", price.s3_gb_month),
    ]


def by_the_hour() -> list[Line]:
    """Return what a month costs in which nothing lands."""
    return [
        Line("Nessie: 2 tasks, vCPUs", 2 * 0.5 * HOURS, "vCPU hours", PRICES.fargate_vcpu_hour),
        Line("Nessie: 2 tasks, memory", 2 * 2 * HOURS, "GB hours", PRICES.fargate_gb_hour),
        Line("Nessie: load balancer", HOURS, "hours", PRICES.load_balancer_hour),
        Line("Nessie: the zone of its name", 1, "zone", PRICES.zone_month),
        Line("Nessie: PostgreSQL", HOURS, "hours", PRICES.database_hour),
        Line("Nessie: its 20 GB", 20, "GB months", PRICES.database_gb_month),
        Line("interface endpoints in one zone", ENDPOINTS * HOURS, "hours", PRICES.endpoint_hour),
        Line("Nessie: 2 public addresses, for its image", 2 * HOURS, "hours", PRICES.address_hour),
        Line("alarms", ALARMS, "alarms", PRICES.alarm_month),
        Line("dashboard", 1, "dashboard", PRICES.dashboard_month),
        Line("metrics of the sweep", 2, "metric", PRICES.metric_month),
        Line("Nessie: its image", 0.5, "GB months", PRICES.image_gb_month),
        Line("secrets", _SECRETS, "secrets", PRICES.secret_month),
    ]


def in_short() -> Iterator[str]:
    """Yield the summary."""
    bill_, run = bill(_MILLION), AWS.cold + run_seconds()
    emr = total([each for each in bill_ if each.name.startswith("EMR")]) / total(bill_)
    vcpus, memory = SETTINGS.workers(2.0)
    shipped, new = SETTINGS.vcpus // SETTINGS.run_vcpus, SETTINGS.at_once(AWS)
    yield (
        f"* **With a run for each file, EMR Serverless is {emr:.0%} of the bill.** The run of a "
        f"file of at most {SETTINGS.small_megabytes:.0f} MB takes {vcpus} vCPUs and {memory} GB "
        f"for at least the minute that is charged: ${run_dollars(0):.4f}. A larger one takes "
        f"{SETTINGS.run_vcpus} vCPUs and {SETTINGS.run_gigabytes} GB: ${run_dollars(0, 100):.3f}."
    )
    yield (
        f"* **With a run for each file, a deployment as shipped does {60 * shipped / run:.1f} a "
        f"minute**: a run holds its vCPUs for {run:.0f} s, and there is room for {shipped}. On a "
        f"new account ({AWS.account_vcpus} vCPUs) it is {60 * new / run:.1f}."
    )
    least, most = (total(shared_bill(_MILLION, group)) for group in (MOST_TOGETHER, 1))
    yield (
        f"* **Small files share job runs** (`SharedRuns`, [record](adr/0033-shared-runs.md)): a "
        f"million cost [${least:,.0f} to ${most:,.0f}](#what-shared-runs-cost), if they fit their "
        f"table. The bill and the limits below are for files with a run each (`SharedRuns: 0`)."
    )
    yield f"* Prices are list prices of {REGION} on {DATE}, never read from a bill."


def sizes() -> Iterator[str]:
    """Yield the costs of other sizes and numbers."""
    costs = {
        "a file of 2 MB": bill(1),
        "a file of 1 GB": bill(1, 1024.0),
        "a GB in files of 2 MB": bill(512),
    }
    rows = ((name, f"${total(lines):,.4g}") for name, lines in costs.items())
    return _table("what, with a run each", "costs", rows=rows)


def places() -> Iterator[str]:
    """Yield how many files a minute each narrow place lets through, the narrowest first."""
    columns = ("place", "why", "files a minute", "what widens it")
    found = sorted((*_job_limits(), *_function_limits(), *_store_limits()), key=lambda x: x[2])
    narrow = [each for each in found if each[2] < _PLENTY]
    rows = ((where, why, f"{a_minute:,.0f}", advice) for where, why, a_minute, advice in narrow)
    yield from _table(*columns, rows=rows)
    yield ""
    yield f"All else, such as the ledger, S3 and one table, lets more than {_PLENTY:,} through."
    # As many as EMR's queue lets wait at the same time.
    runs = SETTINGS.at_once(Aws(account_vcpus=_MILLION))
    waiting = int(runs * 60 * QUEUE_MINUTES / (AWS.cold + run_seconds()))
    yield (
        f"As shipped, of more than {waiting:,} runs at once the last ones wait longer than "
        "`QueueTimeoutMinutes` and time out; `lakegate replay` starts them again."
    )


Limit = tuple[str, str, float, str]  # where, why, files a minute, what widens it


def _job_limits() -> Iterator[Limit]:
    run = AWS.cold + run_seconds()
    shipped = SETTINGS.vcpus // SETTINGS.run_vcpus
    for where, runs, advice in (
        ("vCPU quota of a new account", SETTINGS.at_once(AWS), "ask AWS for more"),
        ("MaximumCpu as shipped", shipped, "MaximumCpu, MaximumMemory"),
        ("ConcurrentRuns as shipped", SETTINGS.runs, "ConcurrentRuns"),
        ("ConcurrentRuns at most", 1000, "share runs"),
    ):
        yield where, f"{runs:,} runs of {run:.0f} s", 60 * runs / run, advice
    starts = f"{AWS.starts:.0f} a second, {AWS.starts_at_once} at once"
    yield "StartJobRun", starts, 60 * AWS.starts, "ask AWS for more; share runs"


def _function_limits() -> Iterator[Limit]:
    upload, at_once = STEPS.upload + STEPS.create, SETTINGS.upload_lambdas
    commit = STEPS.merge + STEPS.rebase + STEPS.member * (MOST_TOGETHER - 1)
    together = (commit + STEPS.record) / MOST_TOGETHER
    a_file = upload + STEPS.judge + together
    why = f"{at_once} at a time, {upload:.2f} s a file"
    yield "on_upload as shipped", why, 60 * at_once / upload, "UploadConcurrency"
    why = f"{A_COMMIT} files a commit of {STEPS.joined:.2f} s, one after the other"
    a_minute = 60 * A_COMMIT / STEPS.joined
    yield "one table", why, a_minute, "nothing yet: land in several tables"
    why = f"{MOST_TOGETHER} files a commit of {STEPS.record:.2f} s"
    a_minute = 60 * MOST_TOGETHER / STEPS.record
    yield "ops.audit_results", why, a_minute, "nothing yet; no file waits for it"
    why = f"{AWS.lambdas:,} at a time, {a_file:.2f} s a file"
    yield "Lambda, the account", why, 60 * AWS.lambdas / a_file, "ask AWS for more"


def _store_limits() -> Iterator[Limit]:
    why = f"{STEPS.nessie * 1000:.0f} ms of all of it a file"
    advice = "a larger machine for it and its PostgreSQL"
    yield "Nessie as measured here", why, 60 / STEPS.nessie, advice
    why = f"{REQUESTS.hottest} of {_PARTITION:,} write units a second"
    advice = "nothing yet: spread the key `landed_day`"
    yield "the ledger's busiest key", why, 60 * _PARTITION / REQUESTS.hottest, advice
    why = f"{REQUESTS.puts} of {_PUTS:,} PUTs a second"
    advice = "S3 splits prefixes by itself, in minutes"
    yield "S3, one prefix", why, 60 * _PUTS / REQUESTS.puts, advice
    # One message a second and channel (Slack, "Rate limits", chat.postMessage).
    failing = "files that fail, one Slack channel"
    yield failing, "1 message a second", 60, "a channel a contract"


def shared() -> Iterator[str]:
    """Yield what a million files cost in shared runs, by how many land at once."""
    columns = (
        *("a million files of 2 MB in a month, landing", "EMR", "all", "EMR is up"),
        "files a minute of one table that one run takes at most",
    )
    turns, groups = Turns(), {"one by one": 1, "10 at once": 10, "100 at once": MOST_TOGETHER}
    rows = [_sharing(name, n, SHARED.seconds(n)) for name, n in groups.items()]
    of_turns = {"upserted": turns.merged, "keys of the whole table": turns.compared}
    rows += [
        _sharing(f"{turns.files} at once, {name}", turns.files, turns.files * seconds, seconds)
        for name, seconds in of_turns.items()
    ]
    yield from _table(*columns, rows=rows)


def _sharing(name: str, group: int, seconds: float, turn: float = 0.0) -> tuple[str, ...]:
    vcpus, memory, *others = shared_bill(_MILLION, group, turn)
    emr, hours = total([vcpus, memory]), up(_MILLION, group, seconds)
    costs = f"${emr:,.0f}", f"${emr + total(others):,.0f}"
    return name, *costs, f"{hours:,.0f} h", f"{60 * group / seconds:,.0f}"


BLOCKS: Mapping[str, Block] = {
    **{block.__name__: block for block in (in_short, sizes, places, shared)},
    "sweeps": lambda: _table(*schedule_costs.SWEEPS, rows=schedule_costs.sweeps()),
    "upkeep": lambda: _table(*schedule_costs.UPKEEP, rows=schedule_costs.upkeep()),
    "million": lambda: _bill("a million files of 2 MB", bill(_MILLION)),
    "nothing": lambda: _bill("a month in which nothing lands", by_the_hour()),
}


def filled(text: str, blocks: Mapping[str, Block]) -> str:
    """Return the page with these blocks computed again."""

    def block(found: re.Match[str]) -> str:
        name = found[1]
        if name not in blocks:
            return found[0]
        return "\n".join((f"<!-- {name} -->", *blocks[name](), "<!-- end -->"))

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", block, text, flags=re.DOTALL)


def _bill(name: str, lines: Sequence[Line]) -> Iterator[str]:
    rows = []
    for each in lines:
        quantity = f"{each.quantity:,.0f}" if each.quantity >= 10 else f"{each.quantity:.1f}"
        price = f"${each.price:.10f}".rstrip("0").rstrip(".")
        rows.append((each.name, f"{quantity} {each.unit}", price, f"${each.dollars:,.2f}"))
    yield from _table(name, "quantity", "price", "cost", rows=rows)
    yield f"| **together** | | | **${total(lines):,.2f}** |"


def _table(*columns: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def main() -> None:
    """Write all blocks into the page."""
    DOCUMENT.write_text(filled(DOCUMENT.read_text(), BLOCKS))


if __name__ == "__main__":
    main()
