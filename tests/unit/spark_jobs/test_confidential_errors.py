"""Messages about files of contracts with confidential columns, which never quote the file."""

import gzip
import json
from dataclasses import asdict
from typing import Any

import pytest

from lakegate.contract.model import Contract, parse
from lakegate.contract.rules import Control
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS
from spark_jobs.audit import verdict
from spark_jobs.audit.control_files import control_differences
from spark_jobs.files.text.csv import header
from spark_jobs.files.text.json import read_json
from spark_jobs.files.text.text_lines import uncompressed
from spark_jobs.files.text.variants import field
from spark_jobs.schema.compare import Comparison, any_columns, compare, undeclared
from spark_jobs.schema.evolution import column_changes
from spark_jobs.schema.types import Struct
from spark_jobs.spark.unforeseen import explained
from tests.fakes.in_memory import InMemory
from tests.unit.contract.contract_texts import HEAD

HEADLESS = b"Jane Doe,jane@example.org,DE89370400440532013000\nJohn Roe,john@example.org,DE11\n"
OWN = ("Jane", "jane", "DE89")


def contract(
    secrecy: str = "confidential", samples: str = "true", format_: str = "csv", **settings: str
) -> Contract:
    """Return a contract with addresses of the given classification."""
    listed = "".join(f", {{property: {name}, value: {text}}}" for name, text in settings.items())
    return parse(
        f"""\
{HEAD}customProperties:
  [{{property: format, value: {format_}}}, {{property: allowSamples, value: {samples}}}{listed}]
schema:
  - name: hr.people
    properties:
      - {{name: name, logicalType: string, required: true}}
      - {{name: email, logicalType: string, classification: {secrecy}}}
""",
        "people",
    )


CLOSED = [contract(), contract(secrecy="restricted"), contract(secrecy="public", samples="false")]
OPEN = contract(secrecy="internal")


def comparison(contract: Contract, *names: str) -> Comparison:
    return compare([(name, "") for name in names], contract)


def reported(comparison: Comparison) -> str:
    """Return all that a report contains about a file's columns."""
    results, reason = (
        verdict.refused_columns(comparison.findings, comparison.wrong)
        if comparison.findings
        else ((), None)
    )
    wrong = comparison.wrong and asdict(comparison.wrong)
    return json.dumps(
        [*map(asdict, results), reason and asdict(reason), *comparison.changes, wrong]
    )


@pytest.mark.parametrize("closed", CLOSED)
def test_a_lost_header_reveals_no_cell(closed: Contract) -> None:
    """Without a header the first row's cells are names, so columns are only numbered."""
    names = header(HEADLESS, closed.options).names
    found = comparison(closed, *names)
    assert not any(word in reported(found) for word in OWN)
    assert [finding.message for finding in found.findings] == [
        "column 'name' is missing",
        "column 'email' is missing",
        "column '#1' is not in the contract",
        "column '#2' is not in the contract",
        "column '#3' is not in the contract",
    ]
    results, reason = verdict.refused_columns(found.findings, found.wrong)
    assert len({result.id for result in results}) == len(results)
    assert reason.message == (
        "2 of 2 columns are missing: 'name', 'email'; "
        "3 names of the header are not in the contract (numbers from the left: 1, 2, 3)"
    )


def test_open_contracts_name_the_files_columns() -> None:
    """Without confidential columns a renamed column is named."""
    told = reported(comparison(OPEN, "name", "e-mail"))
    assert "column 'email' is missing (perhaps 'e-mail', score 1.00)" in told


@pytest.mark.parametrize("format_", ["parquet", "avro", "orc"])
def test_a_schemas_names_are_reported(format_: str) -> None:
    """A format with a schema of its own has true names, so a renamed column is named."""
    closed = contract(format_=format_)
    found = compare([("name", "string"), ("e_mail", "string")], closed)
    assert [finding.column for finding in found.findings] == ["email", "e_mail"]
    assert found.wrong
    assert found.wrong.sentence == "column 'email' is missing (perhaps 'e_mail', score 1.00)"


def test_declared_names_are_reported() -> None:
    """A declared column is named, in any case of the file's spelling."""
    found = comparison(contract(), "NAME", "Name", "Jane Doe")
    assert [finding.column for finding in found.findings] == ["NAME", "email", "#1"]
    assert found.wrong
    assert "(numbers from the left: 3)" in found.wrong.sentence


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("name", "email", "colour"), "'colour'"),
        (("name", "email", "colour", "size", "price"), "numbers from the left: 3, 4, 5"),
        (("name", "colour"), "numbers from the left: 2"),
    ],
)
def test_a_headers_other_names_are_reported(names: tuple[str, ...], shown: str) -> None:
    """A first row with half of the columns' names, and two at least, is a header: all are shown."""
    found = comparison(contract(), *names)
    assert found.wrong
    assert shown in found.wrong.sentence


@pytest.mark.parametrize("policy", ["drop", "add"])
def test_columns_that_may_come_are_numbered_too(policy: str) -> None:
    """The change of an undeclared column is reported, but not its name."""
    closed = contract(extraColumns=policy, format_="json")
    found = comparison(closed, "name", "email", "Jane Doe")
    assert not found.findings
    assert "Jane" not in reported(found)
    assert "column #1 of the file is not in the contract" in found.changes[0]


def test_a_column_that_a_file_added_stays_numbered() -> None:
    """A column that an earlier file added is not named, even if the table has it."""
    brought = contract(extraColumns="add", format_="json")
    grown = Contract(**{**vars(brought), "columns": (*brought.columns, undeclared("Jane", "int"))})
    assert "Jane" not in reported(comparison(grown, "name", "email", "Jane"))
    assert "Jane" not in reported(comparison(grown, "name", "email"))
    there = Struct((("name", "string"), ("email", "string")))
    (added,) = column_changes("t", there, [], grown)
    assert (added.sentence, "`Jane`" in added.statement) == ("table: column #1 added as int", True)


def test_types_are_reported_without_their_fields() -> None:
    """A nested type is reported without its fields, whose names are the file's."""
    types = Struct((("name", Struct((("Jane Doe", "int"),))), ("email", "string")))
    (finding,) = compare(types.fields, contract(format_="json")).findings
    assert finding.message == "column 'name' is struct, which does not fit string"


def test_an_invalid_name_is_not_reported() -> None:
    """The reason why a column cannot be added is omitted, because it contains the name."""
    found = comparison(contract(extraColumns="add", format_="json"), "name", "email", "Jane\tDoe")
    assert "Jane" not in reported(found)


def test_a_transforms_file_is_concealed_as_its_result() -> None:
    """Every column of a transform's file counts as confidential if one of its result is."""
    assert not any_columns(contract()).quotes_files
    assert any_columns(OPEN).quotes_files


def no_json() -> None:
    unused: Any = None
    read_json(unused, "a.json", OPEN, HEADLESS, DEFAULTS)


def a_key_with_quotes() -> None:
    field("value", 'Jane\'s "Doe"')


def text_after_gzip() -> None:
    damaged: Any = InMemory(gzip.compress(b"name\n") + b"Jane")
    with uncompressed(damaged, gzipped=True) as text:
        text.read()


@pytest.mark.parametrize("reading", [no_json, a_key_with_quotes, text_after_gzip])
def test_a_consumers_message_is_masked_for_confidential_contracts(reading: Any) -> None:
    """A reader's message may quote the file, so it is masked for confidential contracts."""
    with pytest.raises(Permanent) as plain_words, explained("it", contract()):
        reading()
    with pytest.raises(Permanent) as full_words, explained("it", OPEN):
        reading()
    assert plain_words.value.code == full_words.value.code
    assert "Ja" not in str(plain_words.value)
    assert "Ja" in str(full_words.value)


def test_a_control_file_is_not_repeated() -> None:
    """A data file with the name of a control file is refused without quoting it."""
    unused: Any = None
    with pytest.raises(Permanent, match="must state exactly rows, but states 3 others") as error:
        control_differences(unused, Control("csv", ()), HEADLESS.decode())
    assert not any(word in str(error.value) for word in OWN)
