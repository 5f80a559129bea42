"""The difference between a table's layout and that of its contract."""

import pytest

from lakegate.contract.reading.layout import COMMENT, SortKey, TableLayout
from lakegate.contract.reading.partitions import Partition
from spark_jobs.schema.layout import missing, partition_clause, sentences

DAY, BUCKET, COUNTRY = (
    Partition("sold", "day"),
    Partition("a`b", "bucket[16]"),
    Partition("country", "identity"),
)
WANTED = TableLayout(
    (DAY, COUNTRY),
    (SortKey("sold"), SortKey("id", descending=True, nulls_first=False)),
    {COMMENT: "Orders.", "a": "1"},
    {"id": "Its number."},
)


def test_a_table_that_has_the_layout_needs_no_change() -> None:
    """Names in another case, partitions in another order and more properties are no difference."""
    there = TableLayout(
        (COUNTRY, Partition("SOLD", "day")),
        (SortKey("Sold"), SortKey("id", descending=True, nulls_first=False)),
        {**WANTED.properties, "b": "2"},
        {**WANTED.comments, "sold": "When."},
    )
    assert missing(there, WANTED) == TableLayout()


def test_what_a_contract_does_not_say_stays() -> None:
    """A contract without a layout changes nothing."""
    assert missing(WANTED, TableLayout()) == TableLayout()


@pytest.mark.parametrize(
    ("there", "wanted", "told"),
    [
        (TableLayout((), ()), TableLayout((DAY,)), "new files partitioned by day(sold)"),
        (
            TableLayout((DAY,), ()),
            TableLayout((COUNTRY, BUCKET)),
            "new files partitioned by country, bucket[16](a`b)",
        ),
        (TableLayout((DAY,), ()), TableLayout(()), "no longer partitioned"),
        (
            TableLayout((), (SortKey("a"), SortKey("b"))),
            TableLayout(order=(SortKey("b"), SortKey("a"))),
            "new files sorted by b asc nulls first, a asc nulls first",
        ),
        (TableLayout((), (SortKey("a"),)), TableLayout(order=()), "no longer sorted"),
        (
            TableLayout((), (), {"a": "1"}),
            TableLayout(properties={"a": "2"}),
            "property a set to 2",
        ),
        (TableLayout((), ()), TableLayout(properties={COMMENT: "x"}), "1 comment set"),
        (
            TableLayout((), (), {}, {"a": "old"}),
            TableLayout(properties={COMMENT: "x"}, comments={"a": "new"}),
            "2 comments set",
        ),
    ],
)
def test_a_difference_is_all_that_changes(
    there: TableLayout, wanted: TableLayout, told: str
) -> None:
    """Another spec, order, property or comment is changed, and the report says so."""
    change = missing(there, wanted)
    assert change == wanted
    assert list(sentences(change)) == [f"table: {told}"]


def test_the_clause_of_a_new_table_has_every_transform() -> None:
    """Spark SQL has functions for transforms, and the plain column for identity."""
    layout = TableLayout((DAY, BUCKET, COUNTRY, Partition("n", "truncate[4]")))
    clause = " PARTITIONED BY (day(`sold`), bucket(16, `a``b`), `country`, truncate(4, `n`))"
    assert partition_clause(layout) == clause
    assert partition_clause(TableLayout(())) == partition_clause(TableLayout()) == ""
