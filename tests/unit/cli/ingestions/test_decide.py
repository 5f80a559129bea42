"""Output and exit codes of `lakegate replay`, `publish`, `discard` and `expire`."""

from collections.abc import Callable

import pytest
import typer

from cli.console.options import confirm
from cli.ingestions import decide
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.failed import Outcome
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError
from tests.unit.cli.cli_examples import AUDITED, LANDED, PUBLISHED, REJECTED, SUBMITTED


def shown(call: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Return the exit code and both outputs of a call."""
    code = call()
    printed = capsys.readouterr()
    return code, printed.out, printed.err


ERRORED = REJECTED.but(state=State.ERRORED, reason=Reason("NO_CONTRACT", "no contract claims it"))
AWAY = "Nessie did not answer; the sweep continues it"
LEFT = "Nessie did not answer"
WHY = REJECTED.reason.message if REJECTED.reason else "no reason"


def by_ann(outcome: Outcome) -> int:
    return decide.report_publish(outcome, "Ann")


@pytest.mark.parametrize(
    ("report", "outcome", "code", "printed", "warning"),
    [
        (decide.report_replay, Outcome(SUBMITTED), 0, "started attempt 1 of [red] März.csv", ""),
        (decide.report_replay, Outcome(SUBMITTED), 0, "lakegate show 0123456789ab", ""),
        (decide.report_replay, Outcome(LANDED), 0, "requested attempt 1 of", ""),
        (decide.report_replay, Outcome(ERRORED), 4, "of [red] März.csv is errored: no cont", ""),
        (by_ann, Outcome(PUBLISHED), 0, f"1,842 rows of [red] März.csv as {'d' * 64}", ""),
        (by_ann, Outcome(PUBLISHED, AWAY), 0, "published 1,842 rows", f"not deleted yet: {LEFT}"),
        (by_ann, Outcome(AUDITED, AWAY), 0, "by Ann; publishing", f"but not finished: {LEFT}"),
        (by_ann, Outcome(REJECTED), 3, f"approved by Ann; rejected: {WHY}", ""),
        (decide.report_discard, Outcome(REJECTED), 0, "März.csv: its branches are deleted", ""),
        (decide.report_discard, Outcome(REJECTED, "S3 is away"), 1, "", "completely: S3 is away"),
        (decide.report_discard, Outcome(REJECTED, "S3"), 1, "", f"lakegate discard {REJECTED.id}"),
    ],
)
def test_an_outcome_is_reported_with_what_is_left_to_do(
    capsys: pytest.CaptureFixture[str],
    report: Callable[[Outcome], int],
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


def test_nothing_is_deleted_without_consent(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal to ask at, a deletion needs --yes."""
    with pytest.raises(typer.BadParameter) as refused:
        confirm("Delete it?", yes=False)
    assert refused.value.format_message() == "Delete it? Nothing was done: add `--yes` to agree."
    confirm("Delete it?", yes=True)
    assert capsys.readouterr() == ("", "")


def test_what_fails_for_one_is_said_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each of several is decided alone; the highest exit code is that of all."""
    other = SUBMITTED.but(id="f" * 32)

    def act(one: Ingestion) -> Outcome:
        if one is REJECTED:
            raise LakegateError("MOVED_ON", "it was discarded")
        return Outcome(one)

    code, done = decide.report_each([SUBMITTED, REJECTED, other], act, decide.report_replay)
    printed = capsys.readouterr()
    assert (code, done) == (1, [SUBMITTED, other])
    assert printed.out.count("started attempt") == 2
    assert "März.csv: it was discarded (MOVED_ON)" in printed.err


def test_unreadable_rows_of_one_file_hold_no_other_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a terminal a file with such rows is named and left as it is; the others go on."""
    other = PUBLISHED.but(id="f" * 32)

    def act(one: Ingestion) -> Outcome:
        if one is REJECTED:
            decide.agree_to("2 of 3 rows could not be read.", REJECTED.name, yes=False)
        return Outcome(one)

    code, done = decide.report_each([PUBLISHED, REJECTED, other], act, by_ann)
    assert (code, done) == (1, [PUBLISHED, other])
    told = capsys.readouterr().err
    assert "März.csv: 2 of 3 rows could not be read." in told
    assert "März.csv: not published: add `--yes`" in told
    assert "Nothing was done" not in told


def test_what_fails_for_the_only_one_is_raised() -> None:
    """A command about one file ends as any other command with that error."""

    def act(_: Ingestion) -> Outcome:
        raise LakegateError("MOVED_ON", "it was discarded")

    with pytest.raises(LakegateError, match="MOVED_ON"):
        decide.report_each([REJECTED], act, decide.report_replay)


def test_several_are_listed_before_they_are_discarded(capsys: pytest.CaptureFixture[str]) -> None:
    """Who confirms sees the first ten files, and how many more there are."""
    with pytest.raises(typer.BadParameter, match="these 2"):
        decide.agree("Delete", [REJECTED, SUBMITTED], yes=False)
    assert capsys.readouterr().err.count("März.csv") == 2
    every = [REJECTED.but(id=f"{n:032}") for n in range(12)]
    with pytest.raises(typer.BadParameter, match="these 12"):
        decide.agree("Replay", every, yes=False)
    told = capsys.readouterr().err
    assert told.count("März.csv (rejected)") == 10
    assert "and 2 more files" in told
