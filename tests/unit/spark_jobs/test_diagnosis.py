"""The one sentence about a file whose columns are not the contract's."""

import unicodedata
from dataclasses import replace

import pytest

from lakegate.audit.diagnosis import WrongColumns
from lakegate.contract.model import Contract, parse
from spark_jobs.audit import verdict
from spark_jobs.files.text.csv import header
from spark_jobs.files.text.header_clues import clues
from spark_jobs.schema.compare import compare
from tests.unit.contract.contract_texts import HEAD
from tests.unit.spark_jobs.test_confidential_errors import contract as people

WIDE = [f"column_{n:02}" for n in range(18)]


def contract(*names: str, secrecy: str = "public", format_: str = "csv") -> Contract:
    """Return a contract with text columns of these names, the first one of this classification."""
    first, *others = names
    marked = f"{first}, required: true, classification: {secrecy}"
    columns = [f"      - {{name: {name}, logicalType: string}}" for name in (marked, *others)]
    format_ = f"customProperties: [{{property: format, value: {format_}}}]\n"
    table = "schema:\n  - name: shop.wide\n    properties:\n"
    return parse(HEAD + format_ + table + "\n".join(columns), "wide")


def wrong(agreed: Contract, *names: str) -> WrongColumns:
    """Return what is wrong with a file of these columns."""
    found = compare([(name, "") for name in names], agreed).wrong
    assert found
    return found


def causes(agreed: Contract, text: str) -> tuple[str, ...]:
    """Return what would explain the header of a CSV text."""
    names = header(text.encode(), agreed.options).names
    return clues(text, names, agreed)


def test_many_missing_columns_are_one_short_sentence() -> None:
    """Each missing column is named once, the first ten at most, whatever the file has."""
    found = compare([(f"x{n}" * 20, "") for n in range(18)], contract(*WIDE))
    assert found.wrong
    results, reason = verdict.refused_columns(found.findings, found.wrong)
    assert len(results) == 36
    assert all(result.is_told for result in results)
    assert "18 of 18 columns are missing: 'column_00'" in reason.message
    assert reason.message.count("column_00") == 1
    assert "and 8 more" in reason.message
    assert sum(len(each.found) for each in results) < 4000
    assert len(reason.message) <= 1000


def test_likely_renames_have_a_score() -> None:
    """Similar names are paired, the most similar first, and named once."""
    agreed = contract("order_id", "amount", "customer_name", "day")
    found = wrong(agreed, "orderId", "amount_eur", "CustomerName", "colour")
    assert [(each.column, each.found) for each in found.renames] == [
        ("order_id", "orderId"),
        ("customer_name", "CustomerName"),
        ("amount", "amount_eur"),
    ]
    assert found.sentence == (
        "4 of 4 columns are missing: 'order_id' (perhaps 'orderId', score 1.00), "
        "'amount' (perhaps 'amount_eur', score 0.80), "
        "'customer_name' (perhaps 'CustomerName', score 1.00), 'day'; "
        "column 'colour' is not in the contract"
    )


def test_a_name_in_another_form_of_unicode_is_told_so() -> None:
    """Two names that look alike are not told as one that is missing though it is there."""
    name = "Gr\u00f6\u00dfe"
    other = unicodedata.normalize("NFD", name)
    assert wrong(contract("id", name), "id", other).sentence == (
        f"column '{name}' is missing (perhaps '{other}', with its accents in another form of "
        "Unicode, NFC or NFD)"
    )


def test_padded_names_are_found() -> None:
    """Names with spaces around them are the cause, and neither missing nor unexpected."""
    found = wrong(contract("id", "price", "day"), "id ", " Price", "day")
    assert found.sentence == "2 header names have spaces at an end: 'id', 'price'"
    closed = wrong(people(), "name ", "email")
    assert closed.sentence == "1 header name has spaces at an end: 'name'"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "id;price;day\n1;2;3\n",
            'the delimiter looks like `;`, not `,` (set options: {delimiter: ";"})',
        ),
        ("id\tprice\tday\n", "the delimiter looks like a tab, not `,` (set options: {delimiter: "),
        ("report of May\n\nid,price,day\n1,2,3\n", "the header looks to be in row 2: remove"),
        ("17,2.50,2026-05-01\n18,2.50,2026-05-01\n", "the header looks to be missing"),
        ('{"id": 1}\n', "this looks like JSON"),
        ("id,pr\ufffdce\n", "the header is not in UTF-8"),
        ("id,cost\n1,2\n", ""),
        ("number,cost\n1,2\n", ""),
    ],
)
def test_a_header_has_clues(text: str, cause: str) -> None:
    """A wrong delimiter, a title above the header, no header and JSON are recognised."""
    found = causes(contract("id", "price", "day"), text)
    assert len(found) == bool(cause)
    assert all(each.startswith(cause) for each in found)


@pytest.mark.parametrize("encoding", ["WINDOWS-1252", "ISO-8859-1"])
@pytest.mark.parametrize("written", ["id,Preis,Währung", "\ufeffid,Preis,Währung", "\ufeffid"])
def test_a_header_in_utf_8_is_recognised(encoding: str, written: str) -> None:
    """Of a header that was read in an encoding of single bytes, a clue says that it is UTF-8."""
    agreed = contract("id", "Preis", "Währung")
    agreed = replace(agreed, options={**agreed.options, "encoding": encoding})
    names = written.encode().decode(encoding).split(",")
    told = f"the header is in UTF-8, not in {encoding} (set options: {{encoding: UTF-8}})"
    assert clues(",".join(names), names, agreed) == (told,)
    assert told not in clues(written, ["id", "Währung"], agreed)


@pytest.mark.parametrize("text", ["Jane;jane@example.org;DE89\n", "name;email;Jane\n", "1,Jane\n"])
def test_a_clue_reveals_no_cell(text: str) -> None:
    """A clue has no text of the file, as the cells of a lost header are values."""
    agreed = people()
    names = header(text.encode(), agreed.options).names
    told = " ".join([*clues(text, names, agreed), wrong(agreed, *names).sentence])
    assert not any(word in told for word in ("Jane", "jane", "DE89"))


def test_a_masked_file_has_no_renames() -> None:
    """Where names must be hidden, no score tells how similar a cell is to a name."""
    found = wrong(contract("name", "email", secrecy="confidential"), "name", "e_mail")
    assert (found.renames, found.unexpected, found.places) == ((), ("#1",), (2,))
