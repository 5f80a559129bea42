"""What `lakegate replay`, `publish`, `discard` and `expire` print, and how they end."""

from collections.abc import Callable

import pytest
import typer

from cli import failed
from functions.operations.discard import Removal
from functions.operations.expire import Expired
from functions.operations.failed import Outcome
from tests.unit.cli.cli_examples import AUDITED, PUBLISHED, REJECTED, SUBMITTED


def shown(call: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit code, and what was printed to both streams."""
    code = 0
    try:
        call()
    except typer.Exit as ending:
        code = ending.exit_code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_replay_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    """It is on its way, and `lakegate show` tells how it goes."""
    code, out, err = shown(lambda: failed.tell_replay(Outcome(SUBMITTED)), capsys)
    assert (code, err) == (0, "")
    assert "attempt 1 of [red] März.csv is on its way" in out
    assert "lakegate show 0123456789ab" in out


def test_a_publish_says_the_commit(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows, file and commit on main are told."""
    code, out, err = shown(lambda: failed.tell_publish(Outcome(PUBLISHED), "Ann"), capsys)
    assert (code, err) == (0, "")
    assert f"published 1,842 rows of [red] März.csv as {'d' * 64}" in out


def test_a_branch_that_stayed_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """Published is published, although the branch could not be deleted yet: both are said."""
    outcome = Outcome(PUBLISHED, "Nessie did not answer; the sweep goes on with it")
    code, out, err = shown(lambda: failed.tell_publish(outcome, "Ann"), capsys)
    assert code == 0
    assert "published 1,842 rows" in out
    assert "its branch is not deleted yet: Nessie did not answer" in err


def test_an_approval_that_waits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the merge could not be made yet, the approval is recorded and the sweep goes on."""
    outcome = Outcome(AUDITED, "Nessie did not answer; the sweep goes on with it")
    code, out, err = shown(lambda: failed.tell_publish(outcome, "Ann"), capsys)
    assert code == 0
    assert "Ann's approval is recorded; it is audited" in out
    assert "recorded; the rest: Nessie did not answer" in err


def test_an_approval_that_did_not_help_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Rejected once more it ends as a rejected drop does."""
    code, out, _ = shown(lambda: failed.tell_publish(Outcome(REJECTED), "Ann"), capsys)
    assert code == 3
    assert "it is rejected" in out


def test_a_discard_says_what_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """How many files were deleted, and which stay for whom."""
    removal = Removal(("s3://lake/a", "s3://lake/b"), {"s3://lake/c": "mine reaches it"})
    code, out, _ = shown(lambda: failed.tell_discard(Outcome(REJECTED, "", removal)), capsys)
    assert code == 0
    assert "discarded [red] März.csv: 2 files deleted" in out
    assert "kept s3://lake/c: mine reaches it" in out


def test_half_a_discard_says_how_to_finish_it(capsys: pytest.CaptureFixture[str]) -> None:
    """It is discarded, not all is deleted, and the command to run again is named."""
    code, _, err = shown(lambda: failed.tell_discard(Outcome(REJECTED, "S3 is away")), capsys)
    assert code == 1
    assert "is discarded, but not all of it is deleted: S3 is away" in err
    assert f"lakegate discard {REJECTED.id}" in err


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_expiry_says_what_goes(dry_run: bool) -> None:
    """A dry run lists each file; both say what stays."""
    removal = Removal(("s3://lake/a",), {"s3://lake/c": "mine reaches it"})
    expired = Expired("shop.orders", ("ingest/x",), "2026", "a" * 32, removal)
    line = failed.line(expired, dry_run=dry_run)
    assert line.startswith(f"ingest/x: {'would go' if dry_run else 'gone'}, with 1 files")
    assert ("s3://lake/a" in line) is dry_run
    assert "kept s3://lake/c: mine reaches it" in line


def test_an_expiry_that_failed_says_so() -> None:
    """What could not be removed is named with its reason."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", left="S3 is away")
    assert failed.line(expired, dry_run=False) == ("ingest/x: not all could be removed: S3 is away")
