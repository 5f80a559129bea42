"""Contracts say how a file's rows enter the table."""

import pytest

from access.contract.hints import hints
from lakegate.contract.model import parse
from lakegate.contract.reading.write_mode import WriteMode
from lakegate.contract.sharing import why_alone, why_own_run
from lakegate.contract.text.yaml import load
from tests.unit.contract.contract_texts import assert_refused, contract_text, parsed

KEY = "- {name: key, logicalType: integer, primaryKey: true}\n"
AT = "- {name: at, logicalType: timestamp, required: true}\n"
OP = "- {name: op, logicalType: string}\n"
DAY = "- {name: day, logicalType: date, partitioned: true}\n"


def asked(mode: str, **more: str) -> str:
    """Return the settings of a contract."""
    lines = {"writeMode": mode, **more}.items()
    return "".join(f"- {{property: {name}, value: {value}}}\n" for name, value in lines)


def test_files_append_unless_the_contract_says_otherwise() -> None:
    """Without a word rows are added, and the contract's requirements are what they were."""
    plain = parsed()
    assert plain.write_mode == WriteMode()
    assert not plain.write_mode
    assert parsed(settings=asked("append")).requirements_digest == plain.requirements_digest


def test_an_upsert_has_a_key_an_order_and_a_flag() -> None:
    """The key is the primary key; the flag's value is one of its column's type."""
    more = {"latestBy": "at", "deleteWhen": "{column: op, value: D}"}
    found = parsed(KEY + AT + OP, settings=asked("upsert", **more))
    assert found.write_mode == WriteMode("upsert", ("key",), "at", "op", "D")
    assert not found.write_mode.follows_landing
    assert found.requirements_digest != parsed(KEY + AT + OP).requirements_digest
    by_landing = parsed(KEY, settings=asked("upsert")).write_mode
    assert (by_landing.key, by_landing.follows_landing) == (("key",), True)


def test_one_key_may_come_several_times_if_one_row_is_the_latest() -> None:
    """With `latestBy` key and time are unique together in a file, else the key alone."""
    for settings, columns in (
        (asked("upsert"), ("key",)),
        (asked("upsert", latestBy="at"), ("key", "at")),
    ):
        checks = parsed(KEY + AT, settings=settings).checks
        assert columns in {check.columns for check in checks if check.metric == "duplicateValues"}


def test_a_table_has_each_key_once() -> None:
    """What a file may have for each value of `latestBy` the table has once; other checks stay."""
    found = parsed(KEY + AT, settings=asked("upsert", latestBy="at"))
    (check,) = set(found.of_table.checks) - set(found.checks)
    assert (check.columns, check.description) == (("key",), "rows that repeat another row's key")
    by_landing = parsed(KEY + AT, settings=asked("upsert"))
    assert by_landing.of_table == by_landing


def test_an_overwrite_has_partitions() -> None:
    """It replaces by the table's partitions."""
    mode = parsed(DAY, settings=asked("overwrite")).write_mode
    assert (mode, mode.follows_landing) == (WriteMode("overwrite"), True)


def test_such_files_come_in_turns() -> None:
    """None needs a run of its own; rows are merged by key together, partitions one by one."""
    upsert, overwrite = (
        parsed(KEY, settings=asked("upsert")),
        parsed(DAY, settings=asked("overwrite")),
    )
    assert (why_own_run(upsert), why_own_run(overwrite)) == ("", "")
    assert why_alone(upsert) == ""
    assert "one after the other" in why_alone(overwrite)


@pytest.mark.parametrize(
    ("columns", "settings", "place", "words"),
    [
        ("", asked("upsrt"), "writeMode", "did you mean upsert?"),
        ("", asked("upsert"), "writeMode", "upsert needs a key"),
        (
            KEY.replace("integer", "number"),
            asked("upsert"),
            "writeMode",
            "double cannot be compared",
        ),
        (KEY, asked("upsert", latestBy="att"), "latestBy", "'att' is not a column here"),
        (KEY + OP, asked("upsert", latestBy="op"), "latestBy", "op must be required"),
        (KEY + OP, asked("append", latestBy="op"), "latestBy", "belongs to writeMode: upsert"),
        (DAY, asked("overwrite", deleteWhen="{}"), "deleteWhen", "belongs to writeMode: upsert"),
        (KEY, asked("upsert", deleteWhen="D"), "deleteWhen", "must be a mapping"),
        (KEY + OP, asked("upsert", deleteWhen="{column: op}"), "deleteWhen.value", "is missing"),
        (
            KEY + AT,
            asked("upsert", deleteWhen="{column: at, value: D}"),
            "deleteWhen.column",
            "at is timestamp, which is no flag",
        ),
        (
            KEY,
            asked("upsert", deleteWhen="{column: key, value: D}"),
            "deleteWhen.value",
            "is not a whole number",
        ),
        ("", asked("overwrite"), "writeMode", "overwrite needs partitions"),
        (
            KEY,
            asked("upsert", onNewVersion="replace"),
            "onNewVersion",
            "has no meaning with upsert",
        ),
    ],
)
def test_what_does_not_fit_is_refused(columns: str, settings: str, place: str, words: str) -> None:
    """Each mistake is named, where it stands."""
    assert_refused(contract_text(columns, settings=settings), f"customProperties.{place}", words)


def test_partitions_by_chance_are_not_overwritten() -> None:
    """A bucket has rows of any file, so a file does not bring all of it."""
    bucket = '[{property: partitionTransform, value: "bucket[4]"}]'
    column = DAY.replace("partitioned: true", f"partitioned: true, customProperties: {bucket}")
    text = contract_text(column, settings=asked("overwrite"))
    assert_refused(text, "customProperties.writeMode", "cannot replace by bucket[4](day)")


def test_no_check_looks_at_rows_that_are_replaced() -> None:
    """A check of the whole table would count rows that the file replaces, so it is refused."""
    rule = (
        "{metric: duplicateValues, mustBe: 0, customProperties: [{property: scope, value: table}]}"
    )
    column = KEY.replace("true}", f"true, quality: [{rule}]}}")
    text = contract_text(column, settings=asked("upsert"))
    assert_refused(text, "customProperties.writeMode", "cannot be checked yet on the whole table")


def test_the_key_of_an_upsert_needs_no_hint() -> None:
    """The merge itself keeps a key once in the table, so no other check is advised."""
    text = contract_text(KEY, settings=asked("upsert"))
    assert not [
        hint
        for hint in hints(load(text, "a test", []), parse(text, "a test"))
        if "primaryKey" in hint.field
    ]
