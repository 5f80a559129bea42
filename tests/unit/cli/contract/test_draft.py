"""`lakegate contract suggest` describes its sample in a valid contract."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.contract.suggest.command import suggested
from cli.main import app
from lakegate.contract.checks import Metric
from lakegate.contract.model import Contract, parse
from lakegate.contract.rules import Rule
from tests.unit.contract.contract_texts import editor_problems

Column = dict[str, Any]
Draft = Callable[..., Contract]


@pytest.fixture
def drafted(tmp_path: Path) -> Draft:
    """Return the contract drafted from a file with a name and text."""

    def draft(text: str, name: str = "shop.csv") -> Contract:
        (tmp_path / name).write_text(text)
        return parse(suggested(tmp_path / name), "draft")

    return draft


def column_of(drafted: Draft, *cells: str, name: str = "c") -> tuple[str, Contract]:
    """Return the type of a CSV column with these cells, and the contract."""
    rows = "".join(f"x,{cell}\n" for cell in cells)
    contract = drafted(f"other,{name}\n{rows}")
    return contract.column(name).type, contract


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (("1", "-20", "0"), "bigint"),
        (("007", "008"), "string"),
        (("+1", "2"), "string"),
        (("12345678901234567890", "1"), "string"),
        (("1.5", "2"), "double"),
        (("1e3", "2"), "double"),
        (("NaN", "2"), "bigint"),
        (("Infinity", "2"), "string"),
        (("true", "false"), "boolean"),
        (("yes", "no"), "string"),
        (("2013-01-31", "2013-12-01"), "date"),
        (("2013-01-32", "2013-12-01"), "string"),
        (("02/03/2013", "2013-12-01"), "string"),
        (("2013-01-31 10:00:00", "2013-01-31T10:00:00.5"), "timestamp_ntz"),
        (("2013-01-31T10:00:00Z", "2013-01-31T10:00:00+01:00"), "timestamp"),
        (("", ""), "string"),
        ((" 1", "2"), "string"),
        (("02JAN2007", "28Feb2007"), "date"),
        (("02JAN2007", "31FEB2007"), "string"),
        (("02JAN2007", "01JAN0000"), "string"),
        (("31.01.2026", "01.02.2026"), "date"),
        (("1/31/2026", "2/1/2026"), "date"),
        (("01/02/2026", "03/04/2026"), "string"),
        (("13/02/2026 10:15:00", "01/02/2026 23:59:59"), "timestamp_ntz"),
        (("2026/01/31", "2026/02/31"), "string"),
        (('"1,5"', '"-20,25"', "3"), "double"),
        (('"1,234"', '"2,500"'), "string"),
    ],
)
def test_a_columns_type_is_what_all_its_texts_are(
    drafted: Draft, cells: tuple[str, ...], type_: str
) -> None:
    """A column has a type only if Spark reads every cell as that type; else it is a string."""
    assert column_of(drafted, *cells)[0] == type_


def test_decimal_commas_are_the_files(drafted: Draft) -> None:
    """Numbers with commas have the option, unless another column's have points."""
    commas = drafted("a;b\n1,5;x\n2,5;y\n")
    assert (commas.column("a").type, commas.options["decimalSeparator"]) == ("double", ",")
    mixed = drafted("a;b\n1,5;1.5\n2,5;2.5\n")
    assert [column.type for column in mixed.columns] == ["string", "double"]
    assert "decimalSeparator" not in mixed.options


def test_names_and_shapes_give_a_narrower_type(drafted: Draft) -> None:
    """A column named like money with a point is a decimal; times of day are times."""
    assert column_of(drafted, "19.90", "5", name="unit_price")[0] == "decimal(12,2)"
    _, contract = column_of(drafted, "23:59:59", "00:00:00")
    assert contract.column("c").logical_type == "time"


def test_only_numbers_may_be_money(tmp_path: Path) -> None:
    """A column named like money is called so if its values are numbers, and no codes."""
    (tmp_path / "a.csv").write_text("amount,price\n5,A\n7,B\n")
    assert suggested(tmp_path / "a.csv").count("if this is money") == 1


def test_days_with_names_of_months_have_their_format(drafted: Draft) -> None:
    """A column of days like 02JAN2007 is a date in that format, with a minimum in ISO 8601."""
    _, contract = column_of(drafted, "03FEB2009", "02JAN2007", "")
    assert contract.column("c").written == "ddMMMyyyy"
    assert "minimum='2006-01-01'" in repr(contract.checks)
    _, contract = column_of(drafted, "7/31/2009", "10/2/2007")
    assert contract.column("c").written == "M/d/yyyy"


def test_what_has_no_null_is_required(drafted: Draft) -> None:
    """Only a column with a value in every row is required."""
    contract = drafted("a,b\n1,\n2,3\n")
    assert [column.required for column in contract.columns] == [True, False]


@pytest.mark.parametrize(
    "shape", ["123e4567-e89b-12d3-a456-426614174000", "ada@example.org", "00123", "DE"]
)
def test_a_common_shape_becomes_a_pattern(drafted: Draft, shape: str) -> None:
    """A shape that all texts share becomes a pattern, or the standard's format for it."""
    _, contract = column_of(drafted, shape, shape, shape)
    (rule,) = (
        c.rule for c in contract.checks if c.metric is Metric.INVALID and c.columns == ("c",)
    )
    assert isinstance(rule, Rule)
    assert rule.pattern or rule.format in ("uuid", "email")


def test_few_words_that_come_again_are_a_set(drafted: Draft) -> None:
    """Codes become an enum, free text does not."""
    _, contract = column_of(drafted, *["NO", "1e5", "a: b"] * 6)
    assert "('1e5', 'NO', 'a: b')" in repr(contract.checks)
    _, free = column_of(drafted, *[f"text {n}" for n in range(18)])
    assert "text 1" not in repr(free.checks)


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [
        (
            [f"{n}:0{n % 9} {half}.m." for n in range(13) for half in "ap"],
            r"^[0-9]+:[0-9]{2} (a|p)\.m\.$",
        ),
        ([*(f"{n} patients" for n in range(30)), *["none"] * 5], "^([0-9]+ patients|none)$"),
        ([f"r{n}c{n}" for n in range(5)], "^r[0-9]+c[0-9]+$"),
        ([f"r{n}c{n}" for n in range(4)], ""),  # each form, and each word, comes five times
        ([*(f"{n} patients" for n in range(30)), *["none"] * 4], ""),
        ([f"{n} {chr(97 + n % 26)}street" for n in range(100)], ""),  # words of an open set
        ([f"{chr(65 + n % 26)}X 1" for n in range(100)], "^[A-Z]{2} [0-9]+$"),
        ([f"Ü-{n}" for n in range(9)], "^Ü-[0-9]+$"),
        (["a b c", "d e"] * 9, ""),
    ],
)
def test_few_forms_that_come_again_are_a_pattern(
    drafted: Draft, cells: list[str], pattern: str
) -> None:
    """Texts of few forms get their pattern, in which only a closed set of words is spelt out."""
    _, contract = column_of(drafted, *cells, name="form")
    rules = [check.rule for check in contract.checks if "form" in check.columns]
    found = {rule.pattern for rule in rules if isinstance(rule, Rule) and rule.pattern}
    assert found == ({pattern} if pattern else set())


def test_limits_leave_room(drafted: Draft) -> None:
    """Limits leave a margin for larger and smaller numbers and other dates."""
    contract = drafted("n,m,d\n1,-3.5,2013-05-01\n40,7,2013-06-01\n")
    said = repr(contract.checks)
    assert "minimum='0'" in said
    assert "maximum='100'" in said
    assert "minimum='-10'" in said
    assert "minimum='2012-01-01'" in said
    (rows,) = (check.expect for check in contract.checks if check.metric is Metric.ROWS)
    assert (int(rows.threshold), int(rows.high or 0)) == (1, 20)


def test_a_key_is_the_first_column_that_is_named_like_one(drafted: Draft) -> None:
    """Of distinct columns named like keys the first is the primary key, the next is unique."""
    contract = drafted("amount,order_id,sku\n1,1,a\n2,2,b\n3,3,c\n")
    keys = [check.columns for check in contract.checks if check.metric is Metric.DUPLICATE]
    assert sorted(keys) == [("order_id",), ("sku",)]


def test_personal_values_are_not_in_the_draft(tmp_path: Path) -> None:
    """A personal column is confidential, and its values appear nowhere in the draft."""
    file = tmp_path / "people.csv"
    file.write_text(
        "name,contact,code\n" + "Ada-1,ada@example.org,x\nBob-2,bob@example.org,x\n" * 10
    )
    text = suggested(file)
    contract = parse(text, "draft")
    assert [column.sensitive for column in contract.columns] == [True, True, False]
    assert "Ada" not in text
    assert "@example" not in text


def test_the_dialect_is_found(drafted: Draft) -> None:
    """The options have the delimiter and the word for null."""
    assert drafted("a;b\n1;x\n2;y\n").options["delimiter"] == ";"
    assert drafted("a,b\n1,NA\nNA,y\n").options["nullValue"] == "NA"


def test_a_compressed_file_is_named_like_its_table(drafted: Draft) -> None:
    """The ends of a file's name are no part of the table's."""
    assert drafted("a,b\n1,2\n", "shop.csv.gz").table == "drafts.shop"


def test_the_draft_is_written_where_nothing_was(tmp_path: Path) -> None:
    """An existing file is never overwritten, and the draft passes `contract check`."""
    data, out = tmp_path / "shop.csv", tmp_path / "shop.yaml"
    data.write_text("id,country\n1,DE\n2,FR\n")
    run = CliRunner().invoke
    arguments = ["contract", "suggest", str(data), "--table", "shop.orders", "--out", str(out)]

    assert run(app, arguments).exit_code == 0
    assert "shop.orders" in run(app, ["contract", "check", str(out)]).stdout
    again = run(app, arguments)
    assert (again.exit_code, "exists, and is not overwritten" in again.stderr) == (1, True)
    assert run(app, arguments[:-2]).stdout == out.read_text()


@pytest.mark.parametrize("table", ["Hotel Bookings", "a.b.c", "ops.x"])
def test_a_table_that_cannot_be_is_refused_as_an_option(tmp_path: Path, table: str) -> None:
    """A name that no table can have is wrong usage of --table: no sample is read for it."""
    data = tmp_path / "shop.csv"
    data.write_text("")
    said = CliRunner().invoke(app, ["contract", "suggest", str(data), "--table", table])
    assert (said.exit_code, "Invalid value for --table: " in said.stderr) == (2, True)


NAMES = st.text(min_size=1, max_size=8).filter(str.isprintable)
VALUES = st.one_of(
    st.lists(st.none() | st.text(max_size=12), min_size=4, max_size=4),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4),
    st.lists(st.none() | st.floats(), min_size=4, max_size=4),
    st.lists(st.none() | st.dates(), min_size=4, max_size=4),
    st.lists(st.none() | st.datetimes(), min_size=4, max_size=4),
    st.lists(st.none() | st.booleans(), min_size=4, max_size=4),
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_every_draft_is_a_contract_that_is_taken(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[Any]]
) -> None:
    """A draft is valid for any values; only a column name can prevent one."""
    file = tmp_path_factory.mktemp("drafts") / "a.parquet"
    names = {
        f"c{number}{name.strip()}": values for number, (name, values) in enumerate(columns.items())
    }
    pyarrow.parquet.write_table(pa.table(names), file)
    text = suggested(file)
    assert [column.name for column in parse(text, "draft").columns] == list(names)
    assert editor_problems(text) == []
