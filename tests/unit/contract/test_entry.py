"""Two versions of a contract are compared by where a file's rows go, and by nothing else."""

import pytest

from lakegate.contract.entry import entry_changes
from lakegate.contract.model import Contract, parse
from tests.unit.contract.contract_texts import contract_text, parsed

KEY = "- {name: key, logicalType: integer, primaryKey: true}\n"
AT = "- {name: at, logicalType: timestamp, required: true}\n"
DAY = "- {name: day, logicalType: date}\n"
IBAN = "- {name: iban, logicalType: string}\n"


def asked(**settings: str) -> str:
    """Return the settings of a contract."""
    return "".join(f"- {{property: {key}, value: {value}}}\n" for key, value in settings.items())


def upsert(**settings: str) -> Contract:
    return parsed(KEY + AT, settings=asked(writeMode="upsert", **settings))


def with_settings(**settings: str) -> Contract:
    return parsed(settings=asked(**settings))


def described(text: str) -> Contract:
    table = "  - name: shop.orders\n"
    return parse(contract_text().replace(table, f"{table}    description: {text}\n"), "orders")


PLAIN = parsed(KEY + AT)
DAYS = parsed(DAY.replace("date}", "date, partitioned: true}"))
RENAMED = parsed(
    "- {name: account, logicalType: string, "
    "customProperties: [{property: formerName, value: iban}]}\n"
)


@pytest.mark.parametrize(
    ("earlier", "now", "changed"),
    [
        (PLAIN, upsert(), ("writeMode",)),
        (upsert(), upsert(latestBy="at"), ("writeMode",)),
        (
            upsert(),
            parsed(AT + KEY.replace("key", "id2"), settings=asked(writeMode="upsert")),
            ("writeMode", "column key"),
        ),
        (parsed(), with_settings(onNewVersion="replace"), ("onNewVersion",)),
        (parsed(), with_settings(isolation="own"), ("isolation",)),
        (parsed(), with_settings(quarantine="{maxRows: 5}"), ("quarantine",)),
        (parsed(), with_settings(provenance="all"), ("provenance",)),
        (with_settings(extraColumns="add"), parsed(), ("extraColumns",)),
        (DAYS, parsed(DAY), ("partitions",)),
        (with_settings(sortOrder="[id]"), parsed(), ("sortOrder",)),
        (
            with_settings(tableProperties="{write.target-file-size-bytes: 2000000}"),
            parsed(),
            ("tableProperties",),
        ),
        (parsed(IBAN), with_settings(droppedColumns="[iban]"), ("column iban",)),
        (
            with_settings(extraColumns="add"),
            with_settings(extraColumns="add", droppedColumns="[iban]"),
            ("column iban",),
        ),
        (parsed(IBAN), RENAMED, ("column iban",)),
        (with_settings(droppedColumns="[iban]"), parsed(IBAN), ("column iban",)),
        (parsed(IBAN), parsed(IBAN.replace("string", "integer")), ("column iban",)),
    ],
)
def test_what_moves_rows_elsewhere_is_a_change(
    earlier: Contract, now: Contract, changed: tuple[str, ...]
) -> None:
    """Each setting that decides where rows go, or which columns come back, is named."""
    assert entry_changes(earlier, now) == changed


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        (parsed(), parsed()),
        (parsed(), parsed(IBAN)),
        (parsed(), parsed(quality="- {metric: rowCount, mustBeGreaterThan: 5}\n")),
        (parsed(IBAN), parsed(IBAN.replace("}", ", description: an account}"))),
        (described("orders"), described("all orders")),
        (parsed(), with_settings(extraColumns="add")),
        (parsed(), with_settings(missingColumns="null", onDuplicate="hold", write="spark")),
        (parsed(DAY), DAYS),
        (with_settings(droppedColumns="[iban]"), parsed()),
    ],
)
def test_what_moves_no_row_is_none(earlier: Contract, now: Contract) -> None:
    """A check, a description, a new column and what the earlier one leaves to the table differ."""
    assert entry_changes(earlier, now) == ()
