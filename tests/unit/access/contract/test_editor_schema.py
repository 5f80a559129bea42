"""The JSON Schema of contracts for editors takes what is valid, and refuses common mistakes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft201909Validator
from typer.testing import CliRunner

from access.contract.check import check
from access.contract.editor_schema import contract_schema
from access.contract.editor_words import WORDS
from access.deployment.checkout import ROOT
from cli.files import sample_files
from cli.main import app
from lakegate.contract.reading.settings import FORMATS
from tests.unit.contract.contract_texts import contract_text, editor_problems, problems_of
from tests.unit.contract.test_docs import BLOCKS
from tests.unit.contract.test_robust import ODD, PLACES, changed, told

SHIPPED = [*(ROOT / "contracts").glob("*.yaml"), ROOT / "infra/smoke/smoke.deployments.yaml"]
WRONG = [  # of a property named c, or of its rule
    "logicalType: strng",
    "logicalType: string, requird: true",
    "logicalType: string, required: 'yes'",
    "logicalType: string, required: null",
    "logicalType: string, items: {logicalType: string}",
    "logicalType: array",
    "logicalType: date, logicalTypeOptions: {maxLength: 3}",
    "logicalType: string, logicalTypeOptions: {format: emial}",
    "logicalType: integer, logicalTypeOptions: {format: i128}",
    "logicalType: string, quality: [{metric: nullValue, mustBe: 0}]",
    "logicalType: string, quality: [{metric: nullValues}]",
    "logicalType: string, quality: [{metric: nullValues, mustBe: 0, mustBeLessThan: 5}]",
    "logicalType: string, quality: [{metric: nullValues, mustBe: 0, severity: eror}]",
    "logicalType: string, quality: [{type: sql, mustBe: 0}]",
    "logicalType: string, customProperties: [{property: severity, value: bad}]",
]
RULES = [  # implementations of a custom rule
    "{check: quantil, column: id, mustBe: 0}",
    "{check: sum, column: id, expression: id > 1, mustBe: 0}",
    "{check: quantile, column: id, share: 95, mustBe: 0}",
    "{check: drift, of: sums, column: id}",
]
SETTINGS = [
    "{property: format, value: xlsx}",
    "{property: onDuplicate, value: drop}",
    "{property: allowSamples, value: 'no'}",
    "{property: quarantine, value: {unreadable: true}}",
    "{property: options, value: {delimeter: ','}}",
    "{property: tableProperties, value: {write.parquet.compression-codec: lz4}}",
    "{property: batches, value: [shop/]}",
    "{property: landingPrefix}",
]


def test_the_command_prints_the_schema() -> None:
    """`lakegate contract schema` prints the schema, which is valid itself."""
    said = CliRunner().invoke(app, ["contract", "schema"])
    assert json.loads(said.stdout) == contract_schema()
    Draft201909Validator.check_schema(contract_schema())


@pytest.mark.parametrize(
    "text",
    [
        *(file.read_text() for file in SHIPPED),
        *map(sample_files.contract, FORMATS),
        BLOCKS[0],
        *(contract_text(block) for block in BLOCKS[1:] if block.startswith("- {name")),
    ],
)
def test_a_contract_that_is_shipped_or_made_fits(text: str) -> None:
    """The demo's contract, those of generated files and those of the guide have no problems."""
    assert editor_problems(text) == []


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from(PLACES), value=ODD)
def test_whatever_is_taken_fits(path: tuple[Any, ...], value: Any) -> None:
    """No contract that `contract check` takes is refused by an editor."""
    text = changed(path, value)
    assert told(check, text) or editor_problems(text) == []


@pytest.mark.parametrize(
    "text",
    [
        *(contract_text(f"- {{name: c, {wrong}}}") for wrong in WRONG),
        *(
            contract_text(quality=f"- {{type: custom, engine: lakegate, implementation: {wrong}}}")
            for wrong in RULES
        ),
        *(contract_text(settings=f"- {wrong}") for wrong in SETTINGS),
        contract_text(head="kind: DataContract\napiVersion: v2.2.2\nid: a\nversion: 1.0.0\n"),
        contract_text(head="kind: DataContract\napiVersion: v3.1.0\nid: a\n"),
        contract_text() + "shcema: []\n",
    ],
)
def test_a_mistake_in_keys_or_choices_is_refused(text: str) -> None:
    """An editor shows misspelt keys, wrong choices and missing values, as `check` does."""
    assert problems_of(text)
    assert editor_problems(text)


def test_the_words_are_those_of_keys() -> None:
    """Every description belongs to a key of the schema, and is one line."""
    text = json.dumps(contract_schema())
    for key, words in WORDS.items():
        assert f'"{key}"' in text, key
        assert re.fullmatch(r".{10,90}\.", words), words
