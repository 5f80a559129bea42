"""The audit report, which is read back as written; an invalid report never passes."""

import json
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.audit.batch_report import together
from lakegate.audit.report import AuditReport, Reason, Status, from_lines, to_lines
from lakegate.errors import Permanent
from tests.fakes.examples import FAILED, REPORT, WRONG, WRONG_FILE

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def document(**changes: Any) -> dict[str, Any]:
    """Return the report's document with changes."""
    return {**json.loads(REPORT.to_json()), **changes}


@given(st.text(), st.text(), st.sampled_from(Status), st.none() | st.text())
def test_a_report_survives_the_way(
    message: str, found: str, status: Status, cell: str | None
) -> None:
    """Any report is read back as it was written."""
    check = replace(FAILED, found=found, status=status, samples=({found: cell},))
    report = replace(REPORT, reason=Reason("X", message), checks=(check, FAILED))
    assert AuditReport.from_json(report.to_json()) == report


def test_what_is_wrong_with_a_file_survives_the_way() -> None:
    """The diagnosis of a wrong file is read back as it was written."""
    assert AuditReport.from_json(WRONG_FILE.to_json()) == WRONG_FILE
    assert (WRONG_FILE.untold, len(WRONG_FILE.failed)) == ((), 2)


def test_a_batch_tells_every_file_with_wrong_columns() -> None:
    """The reason of a batch is about one of its files, so the checks of all of them are shown."""
    batch = together(replace(WRONG_FILE.source, key="a/_manifest.json"), [WRONG_FILE] * 2)
    read = AuditReport.from_json(batch.to_json())
    assert read == batch
    assert (batch.wrong_columns, len(batch.untold)) == (None, 4)
    assert [part.wrong_columns for part in read.parts] == [WRONG, WRONG]


@given(st.lists(st.text()))
def test_reports_in_one_object_survive_the_way(messages: list[str]) -> None:
    """Whatever texts reports contain, each is read back from its line."""
    reports = [replace(REPORT, reason=Reason("X", message)) for message in messages]
    assert from_lines(to_lines(reports), "") == reports


def test_people_can_read_a_report() -> None:
    """A report is indented, and its text is not escaped."""
    assert '\n  "table": "shop.orders"' in REPORT.to_json()
    assert "Zürich" in REPORT.to_json()


@pytest.mark.parametrize(
    "name", [f.name for f in fields(AuditReport) if f.default is f.default_factory]
)
def test_a_report_that_lacks_a_field_is_refused(name: str) -> None:
    """A report without one of the required fields is refused."""
    incomplete = document()
    del incomplete[name]
    with pytest.raises(Permanent, match="BAD_REPORT"):
        AuditReport.from_json(json.dumps(incomplete))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        b"\xff\xfe\xfd",
        REPORT.to_json()[:-10],
        json.dumps(document(schema="audit-report/2")),
        json.dumps(document(verdict="perhaps")),
        json.dumps(document(more=1)),
        json.dumps(document(rows_written=None)),
        json.dumps(document(rows_written="842")),
        json.dumps(document(rows_written=True)),
        json.dumps(document(audited_hash=1)),
        json.dumps(document(reason={"code": "x"})),
        *(
            json.dumps(document(reason={"code": code, "message": "no room"}))
            for code in ("", "~CHECKS_FAILED", "École")
        ),
        json.dumps(document(source={})),
        json.dumps(document(files=[{"path": "s3://lake/a", "rows": "842", "bytes": 1}])),
        json.dumps(document(files=[{"path": "s3://lake/a"}])),
        json.dumps(document(checks=[{**document()["checks"][0], "status": "maybe"}])),
        *(
            json.dumps(document(checks=[{**document()["checks"][0], **wrong}]))
            for wrong in (
                {"columns": [1]},
                {"columns": 1},
                {"samples": ["id 7"]},
                {"samples": [{"_times": "often"}]},
                {"samples": [{"_times": "0"}]},
                {"counted": "two"},
                {"baseline": {"rule": "a", "measured": "b", "runs": 1}},
                {"is_told": "yes"},
            )
        ),
        json.dumps(document(group=[1], schema_changes=[1])),
        json.dumps(document(wrong_columns={"expected": "two"})),
        json.dumps(document(wrong_columns={"expected": 2, "missing": [1]})),
        json.dumps(
            document(
                wrong_columns={
                    "expected": 2,
                    "renames": [{"column": "a", "found": "b", "score": "high"}],
                }
            )
        ),
    ],
)
def test_a_report_in_doubt_is_refused(text: str | bytes) -> None:
    """A report that is incomplete, of an unknown schema or of wrong types is refused."""
    with pytest.raises(Permanent, match="BAD_REPORT"):
        AuditReport.from_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "the audit report r/1.json is not JSON: Expecting property name"),
        ("{}", "the audit report r/1.json lacks 'schema'"),
        ("[]", "the audit report r/1.json is not an audit report of Lakegate: "),
    ],
)
def test_a_refusal_is_a_sentence(text: str, words: str) -> None:
    """The refusal names the report and its problem in words, not in Python's notation."""
    with pytest.raises(Permanent, match="BAD_REPORT") as refused:
        AuditReport.from_json(text, "r/1.json")
    assert refused.value.message.startswith(words)
    assert "Error(" not in refused.value.message


@given(st.sampled_from([f.name for f in fields(AuditReport)]), ANY_JSON)
def test_any_value_in_a_field_gives_a_report_or_a_refusal(name: str, value: Any) -> None:
    """Any JSON in any field gives a report or a refusal, never another error."""
    with suppress(Permanent):
        AuditReport.from_json(json.dumps(document(**{name: value})))


@pytest.mark.parametrize(
    ("status", "blocks"),
    [(Status.PASS, False), (Status.WARN, False), (Status.FAIL, True), (Status.ERROR, True)],
)
def test_failed_and_unevaluated_checks_block(status: Status, blocks: bool) -> None:
    """A check that failed or could not be evaluated blocks publishing; a warning does not."""
    check = replace(FAILED, status=status)
    assert replace(REPORT, checks=(check,)).failed == ((check,) if blocks else ())
