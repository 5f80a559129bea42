"""Failing rows of a report are told by their place, the cells at fault and the key."""

from dataclasses import replace

from lakegate.audit import failing_rows
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.failing_rows import BadRow
from lakegate.audit.report import CheckResult, Status

Row = dict[str, str | None]
NIGHTS = CheckResult(
    "nights", "invalidValues", ("nights",), "error", Status.FAIL, "0 rows", "1 row"
)


def with_rows(*rows: Row, columns: tuple[str, ...] = ("nights",)) -> CheckResult:
    return replace(NIGHTS, samples=rows, columns=columns)


def key(value: str, place: str = "", times: str = "2") -> Row:
    return {"_place": place, "_times": times, "id": value, "hotel": "Adler"}


def test_a_row_is_told_by_place_and_cells() -> None:
    """The cells at fault come first; empty ones, and blanks at an end, can be seen."""
    row: Row = {"_place": "line 1,207", "_file": "s3://a", "_pos": "9", "nights": None, "id": " 7"}
    assert failing_rows.told(with_rows(row)) == ["line 1,207: nights (empty), id ' 7'"]


def test_a_row_of_an_older_report_is_told_without_a_place() -> None:
    """Reports had addresses in the lake alone, which tell people nothing."""
    row: Row = {"_file": "s3://a", "_pos": "9", "nights": "-3"}
    assert failing_rows.told(with_rows(row)) == ["nights -3"]
    assert failing_rows.shown([row]) == [{"nights": "-3"}]


def test_a_key_is_told_with_all_its_places() -> None:
    """Rows of one key are one line, which says if there are more."""
    rows = (key("7", "line 2"), key("7", "line 9"), key("8", "line 4", "7"))
    assert failing_rows.told(with_rows(*rows, columns=("id",))) == [
        "id 7 twice: lines 2, 9",
        "id 8, 7 times: lines 4, …",
    ]
    assert failing_rows.told(with_rows(key("7"), columns=("id",))) == ["id 7 twice"]


def test_keys_that_are_hidden_are_told_apart() -> None:
    """Keys with the same words, as hidden ones, are not told as one with all of their places."""
    twice = [key("(hidden)", f"line {place}") for place in (2, 9, 4, 5)]
    often = [key("(hidden)", f"line {place}", "7") for place in (6, 7, 8)]
    assert failing_rows.told(with_rows(*twice, *often, columns=("id",))) == [
        "id (hidden) twice: lines 2, 9",
        "id (hidden) twice: lines 4, 5",
        "id (hidden), 7 times: lines 6, 7, 8, …",
    ]


def test_a_cell_is_told_as_before() -> None:
    """A cell that could not be read is told by place, column, value and reason."""
    cell = BadCell("line 3", "id", "x", "not a number")
    assert failing_rows.told(with_rows(cell.sample)) == ["line 3: id 'x': not a number"]
    assert failing_rows.bad_rows(with_rows(cell.sample)) == []


def test_a_map_is_at_fault_for_its_keys() -> None:
    """The cell of a check of a map's keys or values is the whole map, as of a list's items."""
    row: Row = {"_place": "line 2", "id": "7", "attrs": "{colour -> red}"}
    for column in ("attrs{key}", "attrs{value}", "attrs[]", "attrs.a"):
        check = with_rows(row, columns=(column,))
        assert failing_rows.offending(check) == ("attrs",)
        assert failing_rows.told(check) == ["line 2: attrs {colour -> red}, id 7"]


def test_a_column_with_a_dot_in_its_name_is_alone_at_fault() -> None:
    """A column `temp.max` does not lie within a column `temp` of the same row."""
    row: Row = {"_place": "line 2", "temp": "7", "temp.max": "90", "temp[F]": "44"}
    for column in ("temp.max", "temp[F]"):
        check = with_rows(row, columns=(column,))
        assert failing_rows.offending(check) == (column,)
        assert failing_rows.own_values(check) == [{column: row[column]}]


def test_a_table_begins_with_the_places() -> None:
    """Its first column are the places, under another name if the file has such a column."""
    placed: Row = {"_place": "row 4", "_pos": "3", "nights": "-3"}
    assert failing_rows.shown([placed, {"nights": "-4"}]) == [
        {"place": "row 4", "nights": "-3"},
        {"place": "", "nights": "-4"},
    ]
    (row,) = failing_rows.shown([{**placed, "place": "Ulm"}])
    assert list(row.items()) == [("_place", "row 4"), ("nights", "-3"), ("place", "Ulm")]


def test_the_column_around_a_value_is_at_fault() -> None:
    """Of a check of a nested value the sample shows the column that it is in."""
    check = with_rows({"guest": "{}", "id": "1"}, columns=("guest.name",))
    assert failing_rows.offending(check) == ("guest",)


def test_programs_get_rows_as_values() -> None:
    """A row has its check, its place, its values as texts, and how often its key comes."""
    (row,) = failing_rows.bad_rows(with_rows(key("7", "line 2"), columns=("id",)))
    assert row == BadRow("nights", "line 2", ("id",), {"id": "7", "hotel": "Adler"}, times=2)
