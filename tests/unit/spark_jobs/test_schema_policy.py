"""The contract's policy for columns that differ from it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from spark_jobs.schema.compare import Comparison, any_columns, compare, undeclared
from spark_jobs.schema.types import parse
from tests.unit.contract.contract_texts import contract_text, parsed, problems_of

_COLUMNS = "- {name: price, logicalType: number, physicalType: 'decimal(10,2)'}\n"


def contract(**settings: str) -> Contract:
    """Return a contract over id (bigint, required) and price (decimal(10,2)), with settings."""
    return parsed(
        _COLUMNS,
        settings="".join(f"- {{property: {k}, value: {v}}}\n" for k, v in settings.items()),
    )


def landing(found: str, **settings: str) -> Comparison:
    """Compare a file with a contract; `found` is its columns as `a int, b string`."""
    columns = [tuple(each.strip().split(" ", 1)) for each in found.split("; ")]
    return compare([(name, parse(type_)) for name, type_ in columns], contract(**settings))


def codes(landing: Comparison) -> list[tuple[str, str]]:
    return [(finding.code, finding.column) for finding in landing.findings]


def types(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def test_the_contracts_own_columns_land_without_a_word() -> None:
    """The same columns in another order and case are not a change."""
    found = landing("PRICE decimal(10,2); Id bigint")
    assert found == Comparison(contract().columns)


def test_a_widening_is_noted() -> None:
    """A narrower type becomes the contract's, and the report says so."""
    found = landing("id int; price decimal(10,2)")
    assert (found.findings, found.changes) == ((), ("column id: int widened to bigint",))
    assert types(found.columns)["id"] == "bigint"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("id bigint; price decimal(18,4)", "some values could change; declare decimal(18,4)"),
        ("id decimal(20,0); price decimal(10,2)", "some values could change"),
        ("id string; price decimal(10,2)", "'id' is string, which does not fit bigint"),
    ],
)
def test_a_type_that_does_not_fit_is_a_finding(found: str, message: str) -> None:
    """A lossy or impossible cast refuses the file, with column and type."""
    (finding,) = landing(found, extraColumns="add", missingColumns='"null"').findings
    assert finding.code == "TYPE_MISMATCH"
    assert message in finding.message


def test_an_extra_column_fails_unless_the_contract_says_otherwise() -> None:
    """By default an extra column refuses the file, by name."""
    found = landing("id bigint; price decimal(10,2); note string")
    assert codes(found) == [("EXTRA_COLUMN", "note")]


def test_an_extra_column_is_left_out_by_name() -> None:
    """With `drop` an extra column is left out, and the report names it."""
    found = landing("id bigint; note string; price decimal(10,2)", extraColumns="drop")
    assert (found.columns, found.findings) == (contract().columns, ())
    assert found.changes == ("column note (string) of the file is not in the contract: left out",)


def test_an_extra_column_is_added_as_the_file_has_it() -> None:
    """With `add` an extra column is nullable, hidden, and of a type that a table can have."""
    found = landing("id bigint; note tinyint; price decimal(10,2); none void", extraColumns="add")
    assert found.findings == ()
    note, none = found.columns[2:]
    assert (note, none) == (undeclared("note", "int"), undeclared("none", "string"))
    assert note.sensitive
    assert not note.required
    message = "column note (tinyint) of the file is not in the contract: added, nullable"
    assert found.changes[0] == message


def test_a_column_of_a_text_format_is_added_as_string() -> None:
    """An extra column of a text format is added as string."""
    found = compare([("id", ""), ("price", ""), ("note", "")], contract(extraColumns="add"))
    assert types(found.columns)["note"] == "string"


@pytest.mark.parametrize(
    ("name", "type_", "why"),
    [
        ("length", "interval day to second", "a table cannot have the type"),
        ("_file", "string", "Iceberg, Spark or reports use"),
        ("a\tb", "string", "cannot name a column"),
        ("ü" * 128, "string", "give up to 255 bytes"),
        (" ", "", "has no name: is a delimiter too many in the header"),
        ("s", "struct<a:time(6)>", "a table cannot have the type"),
        ("\u0130d", "string", "Spark takes its name for 'id'"),
    ],
)
def test_an_unusable_column_is_not_added(name: str, type_: str, why: str) -> None:
    """An unusable name, or a type that Iceberg lacks, is a finding with the reason."""
    columns = [("id", "bigint"), ("price", "decimal(10,2)"), (name, type_ and parse(type_))]
    (finding,) = compare(columns, contract(extraColumns="add")).findings
    assert finding.code == "EXTRA_COLUMN"
    assert why in finding.message


def test_a_column_named_as_a_partition_is_not_added() -> None:
    """Iceberg refuses such a column, so it is a finding of the file, not a fault of the run."""
    day = "customProperties: [{property: partitionTransform, value: day}]"
    sold = f"- {{name: sold, logicalType: date, partitioned: true, {day}}}\n"
    adding = parsed(sold, settings="- {property: extraColumns, value: add}\n")
    columns = [("id", "bigint"), ("sold", "date"), ("Sold_Day", "")]
    (finding,) = compare(columns, adding).findings
    assert (finding.code, finding.column) == ("EXTRA_COLUMN", "Sold_Day")
    assert "Iceberg calls a partition of the table so" in finding.message


def test_a_transform_reads_columns_as_the_file_has_them() -> None:
    """A transform can read columns that no table can have."""
    columns = [("_file", "tinyint"), ("t", "time(6)"), ("n", "void"), ("text", "")]
    found = compare(columns, any_columns(contract()))
    assert found.findings == ()
    assert list(types(found.columns).items()) == [*columns[:3], ("text", "string")]


def test_a_column_of_an_earlier_file_may_be_missing() -> None:
    """A column that only the table has gets the file's values or null; both are reported."""
    grown = contract(extraColumns="add")
    grown = replace(grown, columns=(*grown.columns, undeclared("note", "string")))
    own = [("id", "bigint"), ("price", "decimal(10,2)")]
    without, having = compare(own, grown), compare([*own, ("NOTE", "string")], grown)
    assert without.columns == having.columns == grown.columns
    assert without.changes == ("column note is not in the file: its rows have null",)
    assert having.changes == ("column note is not in the contract; an earlier file added it",)
    (finding,) = compare([*own, ("note", "int")], grown).findings
    assert finding.code == "TYPE_MISMATCH"


def test_a_missing_column_fails_unless_the_contract_says_otherwise() -> None:
    """By default a missing column refuses the file."""
    (finding,) = landing("id bigint").findings
    assert (finding.code, finding.column) == ("MISSING_COLUMN", "price")


@pytest.mark.parametrize("null", ["null", '"null"'])
def test_a_missing_column_is_null_where_nothing_requires_it(null: str) -> None:
    """With `null`, quoted or not, only required columns must be in the file."""
    found = landing("id bigint", missingColumns=null)
    assert (found.columns, found.findings) == (contract().columns, ())
    assert found.changes == ("column price is not in the file: its rows have null",)
    assert codes(landing("price decimal(10,2)", missingColumns=null)) == [("MISSING_COLUMN", "id")]


def test_a_column_under_its_former_name_is_not_left_out() -> None:
    """A file that has only the former name is refused: else the values would be lost in silence.

    Beside the present name, or within another column, it is a column like any other.
    """
    former = "customProperties: [{property: formerName, value: cost}]"
    loose = "- {property: extraColumns, value: drop}\n- {property: missingColumns, value: null}\n"
    renamed = parsed(f"- {{name: price, logicalType: number, {former}}}\n", settings=loose)
    own = [("id", "bigint"), ("Cost", "double")]
    (finding,) = compare(own, renamed).findings
    assert (finding.code, finding.column) == ("EXTRA_COLUMN", "Cost")
    assert "the contract renamed or dropped a column of this name" in finding.message
    assert compare([*own, ("PRICE", "double")], renamed).findings == ()
    assert compare([("id", "bigint"), ("other", "double")], renamed).findings == ()


@pytest.mark.parametrize("extra", ["drop", "add"])
def test_a_file_without_any_column_of_the_contract_is_refused(extra: str) -> None:
    """It is another table's, or has another delimiter: its rows would be nulls alone."""
    loose = {"extraColumns": extra, "missingColumns": '"null"'}
    prices = "- {name: cost, logicalType: number}\n- {name: price, logicalType: number}\n"
    settings = "".join(f"- {{property: {k}, value: {v}}}\n" for k, v in loose.items())
    asked = parsed(prices, settings=settings)
    asked = replace(asked, columns=asked.columns[1:])  # of which none is required
    (one, other) = compare([("cost;price", "")], asked).findings
    assert (one.code, other.code) == ("MISSING_COLUMN", "MISSING_COLUMN")
    assert compare([("PRICE", ""), ("more", "")], asked).findings == ()


def test_every_finding_is_reported_at_once() -> None:
    """All findings of a file are reported at once."""
    found = landing("id string; more int; MORE int", missingColumns="null")
    assert {code for code, _ in codes(found)} == {
        *("DUPLICATE_COLUMN", "EXTRA_COLUMN", "TYPE_MISMATCH"),
    }


def test_an_unknown_policy_is_refused() -> None:
    """A policy that does not exist makes the contract invalid."""
    for setting, value in (("extraColumns", "ignore"), ("missingColumns", "drop")):
        text = contract_text(settings=f"- {{property: {setting}, value: {value}}}\n")
        (problem,) = problems_of(text)
        assert "; use one of" in problem.reason


def test_the_policy_is_part_of_what_a_contract_demands() -> None:
    """A change of the policy changes the contract's requirements."""
    asked = {contract().requirements_digest, contract(extraColumns="add").requirements_digest}
    assert len(asked | {contract(missingColumns="null").requirements_digest}) == 3
