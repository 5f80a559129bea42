"""The layout of a table, as its contract declares it."""

import pytest

from lakegate.contract.model import parse
from lakegate.contract.reading.layout import SortKey, TableLayout
from lakegate.contract.reading.partitions import Partition
from lakegate.contract.reading.table_properties import CODEC
from tests.unit.contract.contract_texts import assert_refused, contract_text, parsed

_DESCRIBED = "  - name: shop.orders\n    description: Orders."
_NESTED = "[{name: b, logicalType: string, partitioned: true}]}"
SIZE = "write.target-file-size-bytes"


def column(name: str, type_: str, *more: str) -> str:
    """Return a column's declaration; `type_` is its logical type, and the physical one if any."""
    logical, _, physical = type_.partition(" ")
    types = [f"logicalType: {logical}", *([f"physicalType: '{physical}'"] if physical else [])]
    return f"- {{{', '.join((f'name: {name}', *types, *more))}}}\n"


def partitioned(name: str, type_: str, transform: str = "", *more: str) -> str:
    """Return the declaration of a column by which the table is partitioned."""
    given = f"customProperties: [{{property: partitionTransform, value: '{transform}'}}]"
    return column(name, type_, "partitioned: true", *([given] if transform else []), *more)


def setting(name: str, value: str) -> str:
    return f"- {{property: {name}, value: {value}}}"


def test_a_contract_that_says_nothing_leaves_a_table_as_it_is() -> None:
    """Without a word on it, neither partitions nor order, properties nor comments are wanted."""
    assert parsed().layout == TableLayout()


@pytest.mark.parametrize(
    ("type_", "transform"),
    [
        *((type_, "identity") for type_ in ("string", "integer", "boolean", "date", "time")),
        ("integer", ""),
        *(("date", each) for each in ("year", "month", "day")),
        *(("timestamp", each) for each in ("year", "month", "day", "hour", "bucket[4]")),
        ("timestamp timestamp_ntz", "hour"),
        *((type_, "bucket[16]") for type_ in ("string", "integer", "date", "string binary")),
        *((type_, "truncate[3]") for type_ in ("string", "integer int", "number decimal(9,2)")),
    ],
)
def test_a_column_is_partitioned_by_any_transform_of_its_type(type_: str, transform: str) -> None:
    """Each transform is known with the types that Iceberg allows; without one it is identity."""
    layout = parsed(partitioned("c", type_, transform)).layout
    assert layout.partitions == (Partition("c", transform or "identity"),)


@pytest.mark.parametrize(
    ("type_", "transform", "reason"),
    [
        ("date", "hour", "give partitionTransform: identity or year or month or day or bucket[N]"),
        ("timestamp", "", "year or month or day or hour"),
        ("string", "month", "does not fit string"),
        ("number", "bucket[4]", "no transform does"),
        ("boolean", "bucket[4]", "partitionTransform: identity"),
        ("date", "truncate[4]", "does not fit date"),
        ("string", "bucket", "did you mean bucket[N]"),
        ("string", "bucket[0]", "is none of"),
        ("string", "bucket[N]", "is none of"),
        ("date", "days", "did you mean day"),
    ],
)
def test_a_transform_that_does_not_fit_is_refused(type_: str, transform: str, reason: str) -> None:
    """A transform of another type, without its number or unknown is refused with those that fit."""
    place = "customProperties.partitionTransform" if transform else "partitioned"
    text = contract_text(partitioned("c", type_, transform))
    assert_refused(text, f"schema[0].properties[1].{place}", reason)


def test_partitions_have_the_order_of_their_positions() -> None:
    """Positions order the partitions; without them they stand as in the contract."""
    plain = [("a", ""), ("b", "")]
    placed = [("a", "partitionKeyPosition: 2"), ("b", "partitionKeyPosition: 1")]
    orders = []
    for columns in (plain, placed):
        text = "".join(
            partitioned(name, "string", "", *filter(None, (at,))) for name, at in columns
        )
        orders.append([each.column for each in parsed(text).layout.partitions or ()])
    assert orders == [["a", "b"], ["b", "a"]]


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        (
            partitioned("a", "string", "", "partitionKeyPosition: 1")
            + partitioned("b", "string", "", "partitionKeyPosition: 1"),
            "[2].partitionKeyPosition",
            "also the position of a",
        ),
        (
            partitioned("a", "string", "", "partitionKeyPosition: 1") + partitioned("b", "string"),
            "[2].partitionKeyPosition",
            "is missing",
        ),
        (
            column("a", "date", "customProperties: [{property: partitionTransform, value: day}]"),
            "[1].customProperties",
            "needs partitioned: true",
        ),
        (
            partitioned("a", "string", "", "classification: confidential"),
            "[1].partitioned",
            "only bucket[N] hides them",
        ),
        (
            partitioned("a", "date", "day") + column("a_day", "date"),
            "[1].customProperties.partitionTransform",
            "another column",
        ),
        (
            "- {name: a, logicalType: object, properties: " + _NESTED,
            "[1].properties[0].partitioned",
            "only whole columns",
        ),
        (
            partitioned("a", "number decimal(9,2)")
            + partitioned("b", "number decimal(9,2)", "truncate[10]"),
            "[2].partitioned",
            "a partitions by decimal(9,2) already: use bucket[N]",
        ),
        (
            partitioned("a", "array", "", "items: {logicalType: string}"),
            "[1].partitioned",
            "no transform does",
        ),
        (
            column("a", "date", "customProperties: [{property: partitiontransform, value: day}]"),
            "[1].customProperties[0].property",
            "did you mean partitionTransform",
        ),
    ],
)
def test_partitions_that_iceberg_or_readers_cannot_have_are_refused(
    text: str, field: str, reason: str
) -> None:
    """Unclear positions, taken names, nested columns and confidential values are refused."""
    assert_refused(contract_text(text), f"schema[0].properties{field}", reason)


def test_a_confidential_column_may_be_in_a_bucket() -> None:
    """The number of a bucket tells nothing of a value."""
    text = partitioned("mail", "string", "bucket[8]", "classification: confidential")
    assert parsed(text).layout.partitions == (Partition("mail", "bucket[8]"),)


def test_partitioned_false_asks_for_a_table_without_partitions() -> None:
    """Where every column that says it says no, the table is to have no partitions.

    A transform may stay beside it, for the day on which it is true again.
    """
    text = partitioned("a", "date", "day").replace("partitioned: true", "partitioned: false")
    assert parsed(text).layout.partitions == ()


def test_an_order_has_directions_and_places_of_nulls() -> None:
    """A sort key ascends with nulls first unless it says otherwise; descending, nulls are last."""
    keys = "[id, a DESC, 'b asc nulls last', 'the day desc nulls first']"
    columns = "".join(column(name, "string") for name in ("a", "b", "the day"))
    assert parsed(columns, settings=setting("sortOrder", keys)).layout.order == (
        SortKey("id", descending=False, nulls_first=True),
        SortKey("a", descending=True, nulls_first=False),
        SortKey("b", descending=False, nulls_first=False),
        SortKey("the day", descending=True, nulls_first=True),
    )
    assert parsed(settings=setting("sortOrder", "[]")).layout.order == ()


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ("[ids]", "[0]", "did you mean id"),
        ("[id, 'id desc']", "[1]", "listed twice"),
        ("[id descending]", "[0]", "'id descending' is not a column"),
        ("[items]", "[0]", "has no order"),
        ("id", "", "must be a list"),
        (f"['id{' ' * 100_000}desc x']", "[0]", "is not a column here"),
    ],
)
def test_an_order_by_anything_else_is_refused(value: str, field: str, reason: str) -> None:
    """A missing column, one twice, one without an order and a strange word are refused."""
    items = "- {name: items, logicalType: array, items: {logicalType: string}}"
    text = contract_text(items, settings=setting("sortOrder", value))
    assert_refused(text, f"customProperties.sortOrder{field}", reason)


def test_table_properties_have_icebergs_names() -> None:
    """Sizes and compression reach the table as texts; format-version says what is so anyway."""
    value = f"{{{SIZE}: 268435456, {CODEC}: gzip, write.parquet.compression-level: 9, "
    text = setting("tableProperties", value + "format-version: 2}")
    assert parsed(settings=text).layout.properties == {
        SIZE: "268435456",
        CODEC: "gzip",
        "write.parquet.compression-level": "9",
    }


@pytest.mark.parametrize(
    ("value", "key", "reason"),
    [
        (f"{SIZE}: 1000", SIZE, "from 1,048,576"),
        (f"{SIZE}: 128 MB", SIZE, "whole number"),
        ("write.target-file-size: 1", "write.target-file-size", f"did you mean {SIZE}"),
        (f"{CODEC}: lzo", CODEC, "use one of zstd"),
        (
            f"{CODEC}: snappy, write.parquet.compression-level: 3",
            "write.parquet.compression-level",
            "no levels",
        ),
        (
            f"{CODEC}: gzip, write.parquet.compression-level: 10",
            "write.parquet.compression-level",
            "from 1 to 9",
        ),
        ("format-version: 3", "format-version", "Nessie"),
        ("write.distribution-mode: range", "write.distribution-mode", "unknown key"),
    ],
)
def test_other_table_properties_are_refused(value: str, key: str, reason: str) -> None:
    """A property off the list, a bad size and version 3 are refused."""
    text = contract_text(settings=setting("tableProperties", f"{{{value}}}"))
    assert_refused(text, f"customProperties.tableProperties.{key}", reason)


def test_descriptions_are_comments() -> None:
    """Descriptions of the table and of columns, nested ones included, become comments."""
    lines = (
        "- name: lines\n  logicalType: array\n  description: What was sold.\n  items:\n"
        "    logicalType: object\n    properties:\n"
        "      - {name: sku, logicalType: string, description: Its number.}\n"
    )
    text = contract_text(lines).replace("  - name: shop.orders\n", f"{_DESCRIBED}\n")
    layout = parse(text, "orders.yaml").layout
    assert layout.properties == {"comment": "Orders."}
    assert layout.comments == {"lines": "What was sold.", "lines.element.sku": "Its number."}
