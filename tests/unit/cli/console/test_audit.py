from cli.console import audit
from tests.unit.cli.cli_examples import (
    PASSED_CHECK,
    REJECTED,
)
from tests.unit.cli.shown import shown


def test_a_check_that_was_not_asked_says_why() -> None:
    """A skipped check, and one that could not be evaluated, is shown with the reason."""
    why = {"found": "skipped", "message": "looks at the whole table"}
    for status in ("skipped", "error"):
        text = shown(audit.checks([{**PASSED_CHECK, **why, "status": status}]))
        assert "skipped: looks at the whole table" in text


def test_only_checks_that_say_something_take_a_line() -> None:
    """Failed checks and warnings are listed; the others are counted."""
    text = shown(audit.checks([PASSED_CHECK, *REJECTED.audit.checks]))

    assert "✗ total.range total 0 rows 3 rows" in text
    assert "! few_late 0 rows 7 rows" in text
    assert "id.nullValues" not in text
    assert audit.check_counts(REJECTED.audit.check_counts) == "1 pass, 1 warn, 1 fail"
