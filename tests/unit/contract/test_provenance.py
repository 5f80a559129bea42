"""Contracts say which columns of their table tell where a row comes from."""

import pytest

from tests.unit.contract.contract_texts import assert_refused, contract_text, parsed

_ALL = ["landed_key", "landed_version", "ingestion_id", "row_number", "landed_at"]


def _setting(value: str) -> str:
    return f"- {{property: provenance, value: {value}}}\n"


def test_without_a_word_there_are_none() -> None:
    """A table has the columns of its files alone, and the requirements are those of before."""
    plain = parsed()
    assert not plain.provenance
    assert plain.table_columns == plain.columns


def test_all_have_usual_names() -> None:
    """`all` adds five nullable columns with comments; files need not have them."""
    contract = parsed(settings=_setting("all"))
    assert [c.name for c in contract.provenance.columns] == _ALL
    assert [c.name for c in contract.columns] == ["id"]
    assert [c.name for c in contract.table_columns] == ["id", *_ALL]
    assert not any(c.required for c in contract.provenance.columns)
    assert set(contract.layout.comments) == set(_ALL)
    assert contract.requirements_digest != parsed().requirements_digest


def test_some_have_names_of_their_own() -> None:
    """Only the columns that a mapping names are added, under these names, in any case."""
    provenance = parsed(settings=_setting("{row: line, ingestion: Gate}")).provenance
    assert [(c.name, c.type) for c in provenance.columns] == [
        ("Gate", "string"),
        ("line", "bigint"),
    ]
    assert provenance.has("GATE")
    assert not provenance.has("row")


def test_a_transforms_result_has_no_row_numbers() -> None:
    """With a transform, `all` are those without the number, which cannot be asked for."""
    transform = "- {property: transform, value: SELECT * FROM file}\n"
    contract = parsed(settings=_setting("all") + transform)
    assert [c.name for c in contract.provenance.columns] == [n for n in _ALL if n != "row_number"]
    text = contract_text(settings=_setting("{row: line}") + transform)
    assert_refused(text, "customProperties.provenance.row", "no row numbers")


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ("{line: row}", ".line", "unknown key; use ingestion, key, landedAt, row, version"),
        ("{row: ID}", ".row", "another column's name"),
        ("{row: a, key: A}", ".row", "another column's name"),
        ('{row: "\u0130D"}', ".row", "another column's name"),
        ("{row: _pos}", ".row", "for themselves"),
        ("{row: ''}", ".row", ""),
        ("some", "", "must be a mapping"),
    ],
)
def test_names_must_be_free(value: str, field: str, reason: str) -> None:
    """A name that a column has, or that none can have, is refused with its place."""
    text = contract_text(settings=_setting(value))
    assert_refused(text, f"customProperties.provenance{field}", reason)
