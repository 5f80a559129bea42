"""The tables of docs/scale.md; `python -m benchmarks.scale` prints them, and a test compares."""

from collections.abc import Iterator, Sequence

from benchmarks.arithmetic import (
    MILLION,
    Line,
    bill,
    by_the_hour,
    limits,
    queued_in_vain,
    run_seconds,
    search,
    sharing,
    total,
)
from benchmarks.prices import PRICES


def tables() -> list[str]:
    """Every line of the document's tables."""
    return [
        *_bill("a million files of 2 MB", bill(MILLION)),
        *_bill("a month of nothing", by_the_hour()),
        *_sizes(),
        *_limits(),
        *_sharing(),
        *_search(),
        f"more than {queued_in_vain():,} job runs",
    ]


def _bill(what: str, lines: Sequence[Line]) -> Iterator[str]:
    yield f"| {what} | quantity | price | cost |"
    for line in lines:
        quantity = f"{line.quantity:,.0f}" if line.quantity >= 10 else f"{line.quantity:.1f}"
        price = f"{line.price:.10f}".rstrip("0").rstrip(".")
        yield f"| {line.what} | {quantity} {line.unit} | ${price} | ${line.dollars:,.2f} |"
    yield f"| **together** | | | **${total(lines):,.2f}** |"


def _sizes() -> Iterator[str]:
    cases = (
        ("a file of 2 MB", 1, 2.0, 1),
        ("a file of 1 GB", 1, 1024.0, 1),
        ("a GB in files of 2 MB", 512, 2.0, 1),
        ("a GB in files of 2 MB, 50 a run", 512, 2.0, 50),
        ("a million files of 2 MB, 50 a run", MILLION, 2.0, 50),
    )
    for name, files, megabytes, shared in cases:
        yield f"| {name} | ${total(bill(files, megabytes, shared)):,.4g} |"


def _limits() -> Iterator[str]:
    for limit in limits():
        yield f"| {limit.where} | {limit.why} | {limit.a_minute:,.0f} | {limit.turn} |"


def _sharing() -> Iterator[str]:
    for rate in (0.0, 0.1, 1.0, 2.0, 10.0, 100.0):
        files, dollars = sharing(rate)
        yield f"| {rate:g} | {files:.1f} | {run_seconds(files):.0f} s | ${dollars:,.0f} |"


def _search() -> Iterator[str]:
    for in_flight in (10, 1_000, 25_000):
        units, megabytes = search(in_flight)
        dollars = units * PRICES.dynamodb_read_m
        yield f"| {in_flight:,} | {megabytes:.1f} MB | {units:,.0f} | ${dollars:,.2f} |"


def main() -> None:
    """Print the tables."""
    print("\n".join(tables()))


if __name__ == "__main__":
    main()
