"""Output and exit codes of `lakegate replay`, `publish`, `discard` and `expire`."""

from collections.abc import Callable

import pytest
import typer

from cli.console.options import confirm
from cli.ingestions import decide as failed
from functions.operations.decisions.failed import Outcome
from functions.operations.upkeep.expire import Expired
from tests.unit.cli.cli_examples import AUDITED, PUBLISHED, REJECTED, SUBMITTED


def shown(call: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Return the exit code and both outputs of a call."""
    code = 0
    try:
        call()
    except typer.Exit as ending:
        code = ending.exit_code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


AWAY = "Nessie did not answer; the sweep continues it"
LEFT = "Nessie did not answer"


def by_ann(outcome: Outcome) -> None:
    failed.report_publish(outcome, "Ann")


@pytest.mark.parametrize(
    ("report", "outcome", "code", "printed", "warning"),
    [
        (failed.report_replay, Outcome(SUBMITTED), 0, "started attempt 1 of [red] März.csv", ""),
        (failed.report_replay, Outcome(SUBMITTED), 0, "lakegate show 0123456789ab", ""),
        (by_ann, Outcome(PUBLISHED), 0, f"1,842 rows of [red] März.csv as {'d' * 64}", ""),
        (by_ann, Outcome(PUBLISHED, AWAY), 0, "published 1,842 rows", f"not deleted yet: {LEFT}"),
        (by_ann, Outcome(AUDITED, AWAY), 0, "by Ann; publishing", f"but not finished: {LEFT}"),
        (by_ann, Outcome(REJECTED), 3, "approved by Ann; rejected", ""),
        (failed.report_discard, Outcome(REJECTED), 0, "März.csv: its branches are deleted", ""),
        (failed.report_discard, Outcome(REJECTED, "S3 is away"), 1, "", "completely: S3 is away"),
        (failed.report_discard, Outcome(REJECTED, "S3"), 1, "", f"lakegate discard {REJECTED.id}"),
    ],
)
def test_an_outcome_is_reported_with_what_is_left_to_do(
    capsys: pytest.CaptureFixture[str],
    report: Callable[[Outcome], None],
    outcome: Outcome,
    code: int,
    printed: str,
    warning: str,
) -> None:
    """The output has the result and a warning for unfinished work; a failure has its exit code."""
    ended, out, err = shown(lambda: report(outcome), capsys)
    assert ended == code
    assert printed in out
    assert warning in err
    assert bool(err) is bool(warning)


@pytest.mark.parametrize(("dry_run", "done"), [(True, "would be deleted"), (False, "deleted")])
def test_an_expiry_says_what_goes(dry_run: bool, done: str) -> None:
    """An expiry prints the branches; a dry run says that they stay."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", "a" * 32)
    assert failed.line(expired, dry_run=dry_run) == f"ingest/x: {done}"


def test_an_expiry_that_failed_says_so() -> None:
    """A branch that could not be deleted is named with the reason."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", left="S3 is away")
    assert failed.line(expired, dry_run=False) == ("ingest/x: not deleted completely: S3 is away")


def test_nothing_is_deleted_without_consent(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal to ask at, a deletion needs --yes."""
    with pytest.raises(typer.BadParameter, match="--yes"):
        confirm("Delete it?", yes=False)
    confirm("Delete it?", yes=True)
    assert capsys.readouterr() == ("", "")
