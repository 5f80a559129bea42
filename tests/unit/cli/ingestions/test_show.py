from dataclasses import asdict, replace
from typing import Any

import pytest

from access.ingestions.identify import identified
from cli.contract import local_test
from cli.ingestions.show import page
from functions.model.ingestion import State
from lakegate.errors import LakegateError
from tests.fakes.clock import FakeClock
from tests.fakes.examples import INGESTION, REPORT, WRONG, WRONG_FILE
from tests.fakes.ledger import FakeLedger
from tests.unit.cli.cli_examples import LANDED, PUBLISHED, QUEUED
from tests.unit.cli.shown import shown

_FIRST = replace(LANDED, id="0123" + 28 * "a")
_SECOND = replace(LANDED, id="0124" + 28 * "b")


@pytest.fixture
def ledger() -> Any:
    made = FakeLedger(FakeClock().now)
    made.begin(_FIRST)
    made.begin(_SECOND)
    return made


@pytest.mark.parametrize("beginning", [_FIRST.id, "0123", "0123A", " 0123aa "])
def test_an_id_may_be_cut_as_long_as_it_is_the_only_one(ledger: Any, beginning: str) -> None:
    """A full id, or a unique prefix of one, finds its ingestion."""
    assert identified(ledger, beginning).id == _FIRST.id


@pytest.mark.parametrize(
    ("beginning", "code"),
    [
        ("012", "AMBIGUOUS_ID"),
        ("", "UNKNOWN_INGESTION"),
        ("f", "UNKNOWN_INGESTION"),
        (32 * "c", "UNKNOWN_INGESTION"),
    ],
)
def test_an_id_that_names_no_one_or_several_is_refused(
    ledger: Any, beginning: str, code: str
) -> None:
    """An unknown or ambiguous prefix raises an error."""
    with pytest.raises(LakegateError, match=code):
        identified(ledger, beginning)


def test_what_became_of_the_columns_is_shown() -> None:
    """`show` prints the transform, its row counts, and each changed column."""
    report = replace(
        REPORT,
        transform="SELECT a\nFROM file",
        source_rows=1000,
        rows_read=842,
        schema_changes=("column a: int widened to bigint", "table: column b added as string"),
    )
    text = shown(page(INGESTION, report))
    assert "1,000 rows in the file, 842 after SELECT a FROM file" in text
    assert "; ".join(report.schema_changes) in text


def test_a_failure_that_waits_for_a_decision_says_what_to_do() -> None:
    """`show` has the alert's advice until nothing is left to decide."""
    failed = replace(INGESTION, state=State.REJECTED, reason=WRONG_FILE.reason)
    advice = "Drop a corrected file, or correct the contract and replay this one."
    assert advice in shown(page(failed, WRONG_FILE))
    assert advice not in shown(page(replace(failed, superseded_by=_SECOND.id), WRONG_FILE))


def test_a_wrong_file_is_one_sentence() -> None:
    """Columns that the reason names are not repeated check by check, nor by `contract test`."""
    kept = tuple(map(asdict, WRONG_FILE.checks))
    wrong = replace(
        INGESTION, reason=WRONG_FILE.reason, audit=replace(INGESTION.audit, checks=kept)
    )
    for text in (shown(page(wrong, WRONG_FILE)), shown(local_test.page(WRONG_FILE))):
        assert WRONG.sentence in text
        assert text.count("carrier") == 1


def test_a_file_that_waits_for_a_shared_run_is_shown() -> None:
    """`show` prints that a file waits, and when it was queued."""
    text = shown(page(QUEUED, None, "waits for a shared run; about 9 files wait or are in work"))
    assert "state landed (queued) progress waits for a shared run; about 9 files wait" in text
    assert "queued 2026-03-01T12:00:01.000+00:00 1.0" in text


def test_the_run_and_the_files_that_it_shared_are_shown() -> None:
    """`show` prints the run that judged a file, and how many files its merge published."""
    together = replace(PUBLISHED, is_shared=True, group=("a", "b", "c"))
    text = shown(page(together, None))
    assert "published with 2 other files" in text
    assert "job run 00run (shared)" in text
    assert "progress" not in text
