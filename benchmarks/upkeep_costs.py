"""What upkeep costs, by the commits of main within KeepDays (`python -m benchmarks.scale`)."""

from collections.abc import Iterator

from benchmarks.parameters import HOURS, PRICES, Upkeep

COLUMNS = (
    *("commits in `KeepDays` (30)", "S3 reads a day", "the daily function takes"),
    *("a month of it", "metadata kept, and a month's storage"),
)
UPKEEP = Upkeep()
_LONGEST = 900  # seconds of a Lambda
_DAYS = HOURS / 24
_KEPT = 2  # in use, then as long behind delete markers
_MILLION = 1_000_000


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the cost of the daily function, and of the metadata that it has yet to delete."""
    for commits in (1_000, 10_000, 100_000):
        reads = commits * UPKEEP.reads
        seconds = commits * UPKEEP.seconds
        a_day = reads * PRICES.s3_get_m / _MILLION
        a_day += seconds * UPKEEP.gigabytes * PRICES.lambda_gb_second
        kept = commits * UPKEEP.metadata_kilobytes * _KEPT / 1e6
        takes = f"{seconds:,.0f} s" if seconds < _LONGEST else f"{seconds:,.0f} s: **too long**"
        storage = f"{kept:,.1f} GB, ${kept * PRICES.s3_gb_month:,.2f}"
        yield f"{commits:,}", f"{reads:,}", takes, f"${a_day * _DAYS:,.2f}", storage
