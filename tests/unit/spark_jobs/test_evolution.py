"""Schema evolution: changes of a table, and refusals."""

import json
from typing import Any

import pytest

from lakegate.errors import Permanent
from spark_jobs.schema.evolution import ColumnChange, column_changes
from spark_jobs.schema.name_mapping import mapped_names
from spark_jobs.schema.types import Struct, parse
from tests.unit.contract.contract_texts import parsed

_COLUMNS = """\
- {name: price, logicalType: number, physicalType: 'decimal(10,2)'}
- {name: rate, logicalType: number}
"""
_THERE = "struct<id:bigint,price:decimal(10,2),rate:double>"


def _mapped(*names: str, fields: Any = ()) -> list[Any]:
    """Return a part of a name mapping for one column."""
    return [{"field-id": 7, "names": names, "fields": fields}]


def grown(there: str, columns: str = _COLUMNS, *not_null: tuple[str, ...]) -> list[ColumnChange]:
    struct = parse(there)
    assert isinstance(struct, Struct)
    return column_changes("t", struct, not_null, parsed(columns))


def test_a_table_that_has_the_columns_stays_as_it_is() -> None:
    """A table with the contract's columns, in any order, is not changed."""
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
    """A new column or a wider type is one statement."""
    (change,) = grown(there)
    assert change.statement == f"ALTER TABLE t {statement}"


def test_a_change_is_reported() -> None:
    """The report has a sentence for each change of the table."""
    told = [each.sentence for each in grown("struct<id:int,rate:double>")]
    assert told == [
        "table: column price added as decimal(10,2)",
        "table: column id widened from int to bigint",
    ]


def test_not_null_is_lifted() -> None:
    """NOT NULL is lifted, so that a bad row can reach the branch."""
    (change,) = grown(_THERE, _COLUMNS, ("id",))
    assert change.statement == "ALTER TABLE t ALTER COLUMN `id` DROP NOT NULL"
    assert change.sentence == "table: NOT NULL lifted from column id"


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ("struct<id:bigint>", _mapped("price", "Rate")),
        (
            "struct<id:bigint,lines:array<struct<sku:string>>>",
            _mapped("lines", fields=_mapped("element", fields=_mapped("sku", "rate"))),
        ),
    ],
)
def test_a_name_by_which_older_files_are_read_is_not_given_again(
    there: str, taken: list[Any]
) -> None:
    """Iceberg would read an earlier column's values in them; every other name is free."""
    rate = "{name: rate, logicalType: number}"
    items = f"{{logicalType: object, properties: [{{name: sku, logicalType: string}}, {rate}]}}"
    lines = f"- {{name: lines, logicalType: array, items: {items}}}\n"
    contract = parsed(lines if "lines" in there else f"- {rate}\n")
    struct = parse(there)
    assert isinstance(struct, Struct)
    with pytest.raises(Permanent, match=r"rate' would have values of an earlier one"):
        column_changes("t", struct, [], contract, mapped=mapped_names(json.dumps(taken)))
    free = mapped_names(json.dumps(taken).lower().replace("rate", "rates"))
    (added,) = column_changes("t", struct, [], contract, mapped=free)
    assert "ADD COLUMNS" in added.statement


def test_identifier_fields_are_refused_with_what_to_do() -> None:
    """Iceberg lifts no NOT NULL from them, so the owner is told the statement that drops them."""
    there = parse(_THERE)
    assert isinstance(there, Struct)
    with pytest.raises(Permanent, match="TABLE_MISMATCH") as refusal:
        column_changes("t", there, [("id",)], parsed(_COLUMNS), identifiers=["id", "price"])
    assert "DROP IDENTIFIER FIELDS id, price" in refusal.value.message


@pytest.mark.parametrize(
    ("there", "advice"),
    [
        (_THERE.replace(">", ",old:string>"), "missingColumns: null"),
        (_THERE.replace("bigint", "decimal(20,0)"), "declare decimal(20,0) again"),
        (_THERE.replace("double", "int"), "declare int again"),  # Iceberg does not widen it so
        (_THERE.replace("10,2", "12,2"), "declare decimal(12,2) again"),
        (_THERE.replace("10,2", "8,1"), "declare decimal(8,1) again"),
        (_THERE.replace("double", "string"), "declare string again"),
        ("struct<price:decimal(10,2),rate:double>", "remove required"),
    ],
)
def test_anything_else_is_refused_with_what_to_do(there: str, advice: str) -> None:
    """A missing, narrower, different or new required column is refused with advice."""
    with pytest.raises(Permanent, match="TABLE_MISMATCH") as refusal:
        grown(there)
    assert advice in refusal.value.message


_RENAMED = """\
- name: b
  logicalType: integer
  customProperties: [{property: formerName, value: A}]
"""


def _changed(there: str, *not_null: tuple[str, ...], dropped: str = "[]") -> list[str]:
    settings = f"- {{property: droppedColumns, value: {dropped}}}\n"
    struct = parse(f"struct<{there}>")
    assert isinstance(struct, Struct)
    contract = parsed(_RENAMED, settings=settings)
    return [c.statement for c in column_changes("t", struct, not_null, contract, {"used"})]


def test_a_column_is_renamed_once() -> None:
    """A column is renamed by its former name, before anything else is done to it; then no more."""
    assert _changed("id:bigint,a:int", ("a",)) == [
        "ALTER TABLE t RENAME COLUMN `a` TO `b`",
        "ALTER TABLE t ALTER COLUMN `b` DROP NOT NULL",
        "ALTER TABLE t ALTER COLUMN `b` TYPE bigint",
    ]
    assert _changed("id:bigint,b:bigint") == []


def test_a_column_is_dropped_where_the_contract_says_so() -> None:
    """Only named columns are dropped; one that files are partitioned by stays, with the reason."""
    assert _changed("id:bigint,b:bigint,Old:string", ("Old",), dropped="[old, never]") == [
        "ALTER TABLE t DROP COLUMN `Old`"
    ]
    with pytest.raises(Permanent, match="cannot lose used"):
        _changed("id:bigint,b:bigint,used:string", dropped="[used]")
    with pytest.raises(Permanent, match="droppedColumns"):
        _changed("id:bigint,a:bigint,b:bigint")
