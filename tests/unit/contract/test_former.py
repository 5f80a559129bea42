"""Contracts name the columns that they rename and drop."""

import pytest

from tests.unit.contract.contract_texts import assert_refused, contract_text, parsed


def _named(name: str, former: str) -> str:
    options = f"[{{property: formerName, value: {former}}}]"
    return f"- {{name: {name}, logicalType: string, customProperties: {options}}}\n"


def _dropped(names: str) -> str:
    return f"- {{property: droppedColumns, value: {names}}}\n"


def test_former_names_and_dropped_columns_are_read() -> None:
    """Names match in any case; without a word there are none."""
    former = parsed(_named("b", "a"), settings=_dropped("[c, d]")).former
    assert (former.renamed, former.dropped) == ({"a": "b"}, ("c", "d"))
    assert [former.has(name) for name in ("A", "D", "b")] == [True, True, False]
    assert not parsed().former.has("a")


@pytest.mark.parametrize("former", ["ID", "b", "''"])
def test_a_former_name_is_no_present_one(former: str) -> None:
    """A former name that a column has is refused."""
    assert_refused(
        contract_text(_named("b", former)),
        "schema[0].properties[1].customProperties.formerName",
        "is the name of another column",
    )


def test_two_columns_have_no_common_past() -> None:
    """Two columns cannot have had one name."""
    text = contract_text(_named("b", "a") + _named("c", "A"))
    assert_refused(text, "schema[0].properties[2].customProperties.formerName", "its former name")


@pytest.mark.parametrize("name", ["ID", "A"])
def test_what_is_declared_or_renamed_is_not_dropped(name: str) -> None:
    """A contract cannot drop a column that it declares or renames."""
    text = contract_text(_named("b", "a"), settings=_dropped(f"[{name}]"))
    assert_refused(text, "customProperties.droppedColumns[0]", "cannot be dropped")


@pytest.mark.parametrize("name", ["{name: fax}", "[fax]", "null", "7"])
def test_what_is_no_name_is_not_dropped(name: str) -> None:
    """A list of anything but names would drop nothing, and say nothing."""
    text = contract_text(settings=_dropped(f"[{name}]"))
    assert_refused(text, "customProperties.droppedColumns[0]", "must be a column's name")
