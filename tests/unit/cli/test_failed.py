"""Output and exit codes of `lakegate replay`, `publish`, `discard` and `expire`."""

from collections.abc import Callable

import pytest
import typer

from cli import failed
from functions.operations.discard import Removal
from functions.operations.expire import Expired
from functions.operations.failed import Outcome
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


def test_a_replay_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    """A replay prints the attempt and the `lakegate show` command."""
    code, out, err = shown(lambda: failed.report_replay(Outcome(SUBMITTED)), capsys)
    assert (code, err) == (0, "")
    assert "started attempt 1 of [red] März.csv" in out
    assert "lakegate show 0123456789ab" in out


def test_a_publish_says_the_commit(capsys: pytest.CaptureFixture[str]) -> None:
    """A publication prints rows, file and commit on main."""
    code, out, err = shown(lambda: failed.report_publish(Outcome(PUBLISHED), "Ann"), capsys)
    assert (code, err) == (0, "")
    assert f"published 1,842 rows of [red] März.csv as {'d' * 64}" in out


def test_a_branch_that_stayed_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """A publication whose branch could not be deleted yet succeeds with a warning."""
    outcome = Outcome(PUBLISHED, "Nessie did not answer; the sweep continues it")
    code, out, err = shown(lambda: failed.report_publish(outcome, "Ann"), capsys)
    assert code == 0
    assert "published 1,842 rows" in out
    assert "its branch is not deleted yet: Nessie did not answer" in err


def test_an_approval_that_waits_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """An approval whose merge failed is recorded, and a warning says so."""
    outcome = Outcome(AUDITED, "Nessie did not answer; the sweep continues it")
    code, out, err = shown(lambda: failed.report_publish(outcome, "Ann"), capsys)
    assert code == 0
    assert "approved by Ann; publishing" in out
    assert "recorded, but not finished: Nessie did not answer" in err


def test_an_approval_that_did_not_help_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """An approval that is rejected again exits like a rejected drop."""
    code, out, _ = shown(lambda: failed.report_publish(Outcome(REJECTED), "Ann"), capsys)
    assert code == 3
    assert "approved by Ann; rejected" in out


def test_a_discard_says_what_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """A discard prints the number of deleted files and the kept files with reasons."""
    removal = Removal(("s3://lake/a", "s3://lake/b"), {"s3://lake/c": "mine reaches it"})
    code, out, _ = shown(lambda: failed.report_discard(Outcome(REJECTED, "", removal)), capsys)
    assert code == 0
    assert "discarded [red] März.csv: 2 files deleted" in out
    assert "kept s3://lake/c: mine reaches it" in out


def test_half_a_discard_says_how_to_finish_it(capsys: pytest.CaptureFixture[str]) -> None:
    """An incomplete discard exits with 1 and prints the command to repeat."""
    code, _, err = shown(lambda: failed.report_discard(Outcome(REJECTED, "S3 is away")), capsys)
    assert code == 1
    assert "is discarded, but not deleted completely: S3 is away" in err
    assert f"lakegate discard {REJECTED.id}" in err


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_expiry_says_what_goes(dry_run: bool) -> None:
    """An expiry prints the kept files; a dry run lists each file to delete."""
    removal = Removal(("s3://lake/a",), {"s3://lake/c": "mine reaches it"})
    expired = Expired("shop.orders", ("ingest/x",), "2026", "a" * 32, removal)
    line = failed.line(expired, dry_run=dry_run)
    assert line.startswith(
        f"ingest/x: {'would be deleted' if dry_run else 'deleted'}, with 1 files"
    )
    assert ("s3://lake/a" in line) is dry_run
    assert "kept s3://lake/c: mine reaches it" in line


def test_an_expiry_that_failed_says_so() -> None:
    """A branch that could not be deleted is named with the reason."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", left="S3 is away")
    assert failed.line(expired, dry_run=False) == ("ingest/x: not deleted completely: S3 is away")
