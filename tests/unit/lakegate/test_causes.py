"""Failed checks are told as a cause: how many rows, and which values, where these may be shown."""

from dataclasses import replace

import pytest

from lakegate.audit import causes
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import READABLE, CheckResult, Status
from lakegate.contract.checks import Check
from lakegate.contract.model import parse

CONTRACT = parse(
    """
kind: DataContract
apiVersion: v3.1.0
id: bookings
version: 1.0.0
schema:
  - name: travel.bookings
    quality:
      - {id: few, metric: rowCount, mustBeBetween: [50, 5000]}
      - type: custom
        engine: lakegate
        id: order
        description: leaves after it comes
        implementation: {check: rowExpression, expression: "nights < 100"}
      - {id: mean, type: custom, engine: lakegate,
         implementation: {check: mean, column: nights, mustBeLessThan: 9}}
    properties:
      - {name: booking_id, logicalType: integer, required: true, unique: true}
      - {name: hotel, logicalType: string, required: true}
      - {name: nights, logicalType: integer, logicalTypeOptions: {minimum: 0}}
      - {name: guests, logicalType: integer, logicalTypeOptions: {minimum: 1, maximum: 9}}
      - {name: status, logicalType: string, enum: [{value: booked}, {value: gone}]}
      - name: agency
        logicalType: integer
        relationships: [{to: travel.agencies.id}]
        quality:
          - metric: duplicateValues
            mustBe: 0
            customProperties: [{property: scope, value: table}]
""",
    "bookings",
)
CHECKS = {check.id: check for check in CONTRACT.checks}


def failed(
    id_: str, counted: int, *values: str | None, found: str = "", times: str = ""
) -> CheckResult:
    """Return a failed check of the contract with sample rows of these values."""
    check: Check = CHECKS[id_]
    name = check.columns[0] if check.columns else ""
    more = {"_times": times} if times else {}
    samples = tuple(
        {"_place": f"line {n}", **more, **({name: value} if name else {})}
        for n, value in enumerate(values, 2)
    )
    words = found or check.expect.found(counted, 300)
    of = (check.id, check.metric.value, check.columns, "error", Status.FAIL, check.expected, words)
    message = check.description or check.measure
    return replace(CheckResult(*of), message=message, samples=samples, counted=counted)


NUMBER, CLOCK = "not a whole number", "not as the contract's format dd/MM/yyyy"


def unreadable(*cells: BadCell) -> CheckResult:
    """Return the failed check of a file that has these cells, and perhaps more."""
    found = "3 of 9 rows could not be read"
    check = replace(failed("few", 3, found=found), id=READABLE)
    return replace(check, samples=tuple(each.sample for each in cells))


@pytest.mark.parametrize(
    ("check", "cause"),
    [
        (failed("hotel.nullValues", 2, None, None), "2 rows without hotel"),
        (failed("nights.invalidValues", 1, "-3"), "nights below 0 in 1 row"),
        (failed("guests.invalidValues", 2, "0", "10"), "guests not between 1 and 9 in 2 rows"),
        (failed("status.invalidValues", 2, "Booked", "x"), "status 'Booked' (1), 'x' (1)"),
        (failed("status.invalidValues", 57, "Booked", "Booked"), "status 'Booked', … in 57 rows"),
        (
            failed("status.invalidValues", 2, "(hidden)"),
            "status not one of booked, gone in 2 rows",
        ),
        (
            failed("booking_id.duplicateValues", 1, "2750", "2750", times="2"),
            "booking_id 2750 twice (lines 2, 3)",
        ),
        (
            failed("agency.missingReferences", 2, "9", "10"),
            "2 rows whose agency is not in id of travel.agencies: 9, 10",
        ),
        (
            failed("agency.missingReferences", 30, "9", "9"),
            "30 rows whose agency is not in id of travel.agencies: 9, …",
        ),
        (
            failed("agency.missingReferences", 1, "(hidden)"),
            "1 row whose agency is not in id of travel.agencies",
        ),
        (
            failed("agency.duplicateValuesInTable", 1, "9"),
            "1 row that repeats another row's agency in the whole table: 9",
        ),
        (failed("order", 3), "3 rows against “leaves after it comes”"),
        (failed("few", 200_000), "200,000 rows (the contract allows between 50 and 5,000)"),
        (
            replace(failed("nights.mean", 0, found="77"), counted=None),
            "77, expected less than 9 (the mean of nights)",
        ),
        (
            replace(failed("few", 4, found="4 rows are odd"), id=READABLE),
            "4 rows are odd",
        ),
        (
            unreadable(BadCell("line 2", "nights", "x", NUMBER)),
            f"3 of 9 rows could not be read: nights {NUMBER}",
        ),
        (
            unreadable(
                BadCell("line 2", "", "1,2", "2 cells, but the header has 3"),
                BadCell("line 3", "comes", "(hidden)", CLOCK),
                BadCell("line 4", "comes", "(hidden)", CLOCK),
                BadCell("line 4", "nights", "x", NUMBER),
            ),
            f"3 of 9 rows could not be read: 2 cells, but the header has 3; comes {CLOCK}; …",
        ),
    ],
)
def test_a_failed_check_is_told_as_its_cause(check: CheckResult, cause: str) -> None:
    """Each kind of check has words of its own, and no check's id is among them."""
    assert causes.sentence([check], CHECKS) == cause


def test_causes_are_told_in_one_sentence() -> None:
    """The first four are told, and how many others there are."""
    null, range_ = failed("hotel.nullValues", 2), failed("nights.invalidValues", 1, "-3")
    both = causes.sentence([null, range_], CHECKS)
    assert both == "2 rows without hotel, nights below 0 in 1 row"
    others = [failed("hotel.nullValues", number) for number in range(3, 7)]
    assert causes.sentence([null, *others], CHECKS).endswith("and 1 more failed check")


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (failed("hotel.nullValues", 1), "1 row without hotel"),
        (failed("order", 3), "3 rows: leaves after it comes"),
        (failed("few", 7), "7 rows (the contract allows between 50 and 5,000)"),
    ],
)
def test_a_result_alone_tells_what_was_found(check: CheckResult, found: str) -> None:
    """Where the contract is not at hand, the result says as much as it knows."""
    assert causes.finding(vars(check)) == found


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("hotel.nullValues", "a row without hotel"),
        ("nights.invalidValues", "a row whose nights is not at least 0"),
        ("booking_id.duplicateValues", "a row that repeats another row's booking_id"),
        ("order", "a row against “leaves after it comes”"),
    ],
)
def test_a_single_row_is_told_what_is_wrong_with_it(check: str, reason: str) -> None:
    """The words of a check fit one row; the owner's description takes their place."""
    assert causes.row_cause(CHECKS[check]) == reason
