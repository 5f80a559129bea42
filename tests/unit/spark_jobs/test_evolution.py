"""How a table grows to what a contract asks for, and what it never does."""

import pytest

from lakegate.errors import Permanent
from spark_jobs.schema.evolution import Growth, growth
from spark_jobs.schema.types import Struct, parse
from tests.unit.contract.contract_texts import parsed

_COLUMNS = """\
- {name: price, logicalType: number, physicalType: 'decimal(10,2)'}
- {name: rate, logicalType: number}
"""
_THERE = "struct<id:bigint,price:decimal(10,2),rate:double>"


def grown(there: str, columns: str = _COLUMNS, *not_null: tuple[str, ...]) -> list[Growth]:
    struct = parse(there)
    assert isinstance(struct, Struct)
    return growth("t", struct, not_null, parsed(columns))


def test_a_table_that_has_the_columns_stays_as_it_is() -> None:
    """In any order, nothing is to be done."""
    assert grown("struct<rate:double,ID:bigint,price:decimal(10,2)>") == []


@pytest.mark.parametrize(
    ("there", "statement"),
    [
        ("struct<id:bigint,price:decimal(10,2)>", "ADD COLUMNS (`rate` double)"),
        (_THERE.replace("bigint", "int"), "ALTER COLUMN `id` TYPE bigint"),
        (_THERE.replace("double", "float"), "ALTER COLUMN `rate` TYPE double"),
        (_THERE.replace("10,2", "9,2"), "ALTER COLUMN `price` TYPE decimal(10,2)"),
    ],
)
def test_a_new_column_and_a_wider_type_are_one_statement(there: str, statement: str) -> None:
    """What Iceberg can do without touching a row is done."""
    (change,) = grown(there)
    assert change.statement == f"ALTER TABLE t {statement}"


def test_a_change_is_told() -> None:
    """The report says what became of the table."""
    told = [each.told for each in grown("struct<id:int,rate:double>")]
    assert told == [
        "table: column price added as decimal(10,2)",
        "table: column id widened from int to bigint",
    ]


def test_what_allows_no_null_is_made_to() -> None:
    """A bad row must reach the branch: the audit says no to it, not the table."""
    (change,) = grown(_THERE, _COLUMNS, ("id",))
    assert change.statement == "ALTER TABLE t ALTER COLUMN `id` DROP NOT NULL"
    assert change.told == "table: NOT NULL lifted from column id"


@pytest.mark.parametrize(
    ("there", "advice"),
    [
        (_THERE.replace(">", ",old:string>"), "missingColumns: null"),
        (_THERE.replace("bigint", "decimal(20,0)"), "declare decimal(20,0) again"),
        (_THERE.replace("double", "int"), "declare int again"),  # Iceberg does not widen it so
        (_THERE.replace("10,2", "12,2"), "declare decimal(12,2) again"),
        (_THERE.replace("10,2", "8,1"), "declare decimal(8,1) again"),
        (_THERE.replace("double", "string"), "declare string again"),
        ("struct<price:decimal(10,2),rate:double>", "leave out required"),
    ],
)
def test_anything_else_is_refused_with_what_to_do(there: str, advice: str) -> None:
    """A column that is gone, narrower, of another type, or new and required stops the file."""
    with pytest.raises(Permanent, match="TABLE_MISMATCH") as refusal:
        grown(there)
    assert advice in refusal.value.message
