"""The figures of docs/scale.md; `python -m benchmarks.scale` writes them into it.

In the page each block stands between `<!-- name -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.arithmetic import (
    AWS,
    MILLION,
    SETTINGS,
    STEPS,
    Line,
    bill,
    by_the_hour,
    limits,
    queued_in_vain,
    run_dollars,
    run_seconds,
    search,
    sharing,
    swept,
    total,
    warm_dollars,
)
from benchmarks.prices import DATE, PRICES, REGION
from benchmarks.simulate import SCENARIOS, Scenario, header, line, run

DOCUMENT = Path(__file__).parents[1] / "docs" / "scale.md"
Block = Callable[[], Iterator[str]]


def in_short() -> Iterator[str]:
    """What a person in a hurry should know."""
    million, run_ = bill(MILLION), AWS.cold + run_seconds()
    emr = total([each for each in million if each.what.startswith("EMR")]) / total(million)
    largest = (60 - run_seconds(1, 0)) / STEPS.job_megabyte
    shipped, new = SETTINGS.vcpus // SETTINGS.run_vcpus, SETTINGS.at_once(AWS)
    yield (
        f"* **EMR Serverless is {emr:.0%} of the bill.** A run takes {SETTINGS.run_vcpus} vCPUs "
        f"and {SETTINGS.run_gigabytes} GB for at least the minute that is charged: "
        f"${run_dollars(0):.3f} a file, be it of 1 KB or of {largest:,.0f} MB."
    )
    yield (
        f"* **As shipped a deployment does {60 * shipped / run_:.1f} files a minute**: a run holds "
        f"its vCPUs for {run_:.0f} s, most of it waiting for them, and there is room for "
        f"{shipped}. On a new account ({AWS.account_vcpus} vCPUs) it is {60 * new / run_:.1f}."
    )
    yield (
        f"* Prices are list prices of {REGION} on {DATE}, never read from a bill. Workers kept "
        f"warm cost ${warm_dollars():.2f} an hour for each run that they are for."
    )


def million() -> Iterator[str]:
    """The bill of a million files."""
    return _bill("a million files of 2 MB", bill(MILLION))


def nothing() -> Iterator[str]:
    """The bill of a month without a file."""
    return _bill("a month in which nothing lands", by_the_hour())


def sizes() -> Iterator[str]:
    """What other sizes and numbers cost."""
    cases = (
        ("a file of 2 MB", 1, 2.0, 1),
        ("a file of 1 GB", 1, 1024.0, 1),
        ("a GB in files of 2 MB", 512, 2.0, 1),
        ("a GB in files of 2 MB, 50 a run", 512, 2.0, 50),
        ("a million files of 2 MB, 50 a run", MILLION, 2.0, 50),
    )
    yield from _head("| what | costs |")
    for name, files, megabytes, shared in cases:
        yield f"| {name} | ${total(bill(files, megabytes, shared)):,.4g} |"


def places() -> Iterator[str]:
    """Where files pile up."""
    yield from _head("| place | why | files a minute | what widens it |")
    for each in limits():
        yield f"| {each.where} | {each.why} | {each.a_minute:,.0f} | {each.turn} |"
    yield ""
    yield (
        f"A queue that is too long loses its end: as shipped, of more than {queued_in_vain():,} "
        "runs at once the last ones wait longer than `QueueTimeoutMinutes` and time out; people "
        "are told, and `lakegate replay` starts them again."
    )


def shared() -> Iterator[str]:
    """What sharing job runs would save."""
    yield from _head("| files of a table a minute | files a run | a run | a million files |")
    for rate in (0.0, 0.1, 1.0, 2.0, 10.0, 100.0):
        files, dollars = sharing(rate)
        yield f"| {rate:g} | {files:.1f} | {run_seconds(files):.0f} s | ${dollars:,.0f} |"


def searched() -> Iterator[str]:
    """What each publish reads of the ledger."""
    yield from _head("| in flight | looked through | read units a publish | for a million |")
    for in_flight in (10, 1_000, 25_000):
        units, megabytes = search(in_flight)
        dollars = units * PRICES.dynamodb_read_m
        yield f"| {in_flight:,} | {megabytes:.1f} MB | {units:,.0f} | ${dollars:,.2f} |"


def sweeps() -> Iterator[str]:
    """What the sweep costs by what lies in the landing bucket."""
    yield from _head("| versions kept | a sweep | a month of sweeps |")
    for kept in (1_000, 100_000, 1_000_000, 10_000_000):
        seconds, dollars = swept(kept)
        yield f"| {kept:,} | {seconds:,.0f} s | ${dollars:,.2f} |"


def simulated(scenarios: Sequence[Scenario] = SCENARIOS) -> Iterator[str]:
    """What `make simulate` prints."""
    yield from ("```", header())
    yield from (line(scenario, run(scenario, seed=1)) for scenario in scenarios)
    yield "```"


BLOCKS: Mapping[str, Block] = {
    block.__name__: block
    for block in (in_short, million, nothing, sizes, places, sweeps, shared, searched)
}


def filled(text: str, blocks: Mapping[str, Block]) -> str:
    """The page with what these blocks tell now."""

    def told(found: re.Match[str]) -> str:
        name = found[1]
        if name not in blocks:
            return found[0]
        return "\n".join((f"<!-- {name} -->", *blocks[name](), "<!-- end -->"))

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", told, text, flags=re.DOTALL)


def _bill(what: str, lines: Sequence[Line]) -> Iterator[str]:
    yield from _head(f"| {what} | quantity | price | cost |")
    for each in lines:
        quantity = f"{each.quantity:,.0f}" if each.quantity >= 10 else f"{each.quantity:.1f}"
        price = f"{each.price:.10f}".rstrip("0").rstrip(".")
        yield f"| {each.what} | {quantity} {each.unit} | ${price} | ${each.dollars:,.2f} |"
    yield f"| **together** | | | **${total(lines):,.2f}** |"


def _head(columns: str) -> Iterator[str]:
    yield columns
    yield "|" + "---|" * (columns.count("|") - 1)


def main() -> None:
    """Write all blocks into the page."""
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(filled(text, {**BLOCKS, "simulated": simulated}))


if __name__ == "__main__":
    main()
