"""A mended file is published once, in the place of the rejected one, whatever happens beside it."""

import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from access.tables.history import commits
from cli.tables.log import log_of
from functions.model.decisions import Mends
from functions.model.ingestion import State
from functions.model.shown_state import ShownState
from functions.operations.recovery.rebuild_ledger import rebuild
from lakegate.audit.report import HAS_ROWS, QUARANTINE_LIMIT, READABLE
from lakegate.errors import LakegateError
from lakegate.refusals import RightMissing
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault, ProcessDied, When, die
from tests.fakes.job import REPEATED, passed, rejected
from tests.fakes.scenario import Scenario
from tests.unit.access.mending.rejected_files import (
    NAME,
    NULL,
    OTHER,
    UNREADABLE,
    Rejected,
    failing,
)
from tests.unit.cli.shown import shown

pytestmark = pytest.mark.usefixtures("quiet")

BODY = b"id\n1\nx\n\n3\ny\n"
BROKEN = {3: "id: not a whole number", 6: "id: not a whole number"}
FIXED = b"_line,_reason,id\n3,,2\n6,,4\n"
WHOLE = b"id\n1\n2\n\n3\n4\n"


@pytest.fixture
def file(deployment: Scenario, tmp_path: Path) -> Rejected:
    """Return a rejected file with two broken rows."""
    return Rejected(deployment, BODY, BROKEN, tmp_path)


def on_main(file: Rejected) -> list[str]:
    """Return the versions of the file whose rows are on main."""
    versions = (each for each in file.deployment.landing.landed() if each.key == NAME)
    return [each.version for each in versions if file.deployment.on_main(each) == [True]]


def test_a_mended_file_is_published_under_both_names(file: Rejected) -> None:
    """The whole is audited and published; the log names both files, and the rejected one closes."""
    done, mended = file.mend(FIXED, by=" Ann ")
    assert mended == WHOLE
    new = file.deployment.end_of(done.ingestion.landed)
    assert (new.state, new.id, new.landed.key) == (State.PUBLISHED, done.ingestion.id, NAME)
    assert file.asked == [(TABLE, frozenset({NULL.id, READABLE}))]
    old = file.ingestion
    assert (ShownState.of(old), old.superseded_by) == (ShownState.SUPERSEDED, new.id)
    assert [(each.what, each.by) for each in old.decisions.actions] == [("mend", "Ann")]
    (commit,) = commits(file.deployment.adapters, TABLE, 20)
    assert commit.message == f"Publish 3 rows of monday.csv mended with fixed.csv to {TABLE}"
    (named,) = commit.ingestions
    assert named.mended == new.mends == Mends(old.id, "fixed.csv", "Ann")
    assert f"monday.csv of {old.id[:12]} mended with fixed.csv by Ann" in shown(log_of([commit]))
    assert on_main(file) == ["v2"]


def test_a_rebuilt_ledger_knows_what_was_mended(file: Rejected) -> None:
    """What a mended file is made of comes back from main's log."""
    done, _ = file.mend(FIXED)
    new = file.deployment.end_of(done.ingestion.landed)
    file.deployment.ledger.lose(new.id)
    list(rebuild(file.deployment.adapters))
    assert file.deployment.ingestion(new).mends == new.mends


def test_the_same_correction_lands_once(file: Rejected) -> None:
    """A repeated command names the mended file that is in flight; once published, it is refused."""
    first, _ = file.mend(FIXED)
    again, _ = file.mend(FIXED)
    assert again.ingestion.id == first.ingestion.id
    assert len(list(file.deployment.landing.landed())) == 2
    file.deployment.settle()
    with pytest.raises(LakegateError, match=r"NOT_REJECTED.*superseded.*\nDetails: "):
        file.mend(FIXED)
    assert on_main(file) == ["v2"]


def test_another_correction_lands_only_over_the_rejected_version(file: Rejected) -> None:
    """Of two corrections the first lands, and the second one is refused without a trace."""
    file.mend(FIXED)
    with pytest.raises(LakegateError, match=r"SUPERSEDED.*newer version of monday.csv.*\n"):
        file.mend(FIXED.replace(b",4", b",5"))
    file.deployment.settle()
    assert on_main(file) == ["v2"]


def test_a_mended_file_that_fails_is_mended_again(file: Rejected) -> None:
    """A correction that is wrong again is rejected as a file of its own, and mended in turn."""
    done, wrong = file.mend(FIXED.replace(b",4", b",z"))
    file.deployment.script(done.ingestion.landed, failing(UNREADABLE))
    file.deployment.settle()
    assert file.ingestion.is_open
    file.landed, file.body, file.broken = done.ingestion.landed, wrong, {6: "again"}
    done, mended = file.mend(b"_line,_reason,id\n6,,4\n", "again.csv")
    assert mended == WHOLE
    file.deployment.settle()
    assert on_main(file) == ["v3"]
    assert not list(file.deployment.ledger.open_failures())


CSV = "- {property: format, value: csv}"
UPSERT = f"{CSV}\n  - {{property: writeMode, value: upsert}}"
TRANSFORM = f"{CSV}\n  - {{property: transform, value: SELECT id FROM file}}"
Decide = Callable[[Scenario, Any], object]
DECISIONS: list[Decide] = [Scenario.publish_anyway, Scenario.replay]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("decide", DECISIONS)
def test_who_decides_while_a_file_is_mended_is_refused(
    file: Rejected, decide: Decide, when: When
) -> None:
    """Whether the mended file has landed yet or not, the rejected one's rows do not come, too."""
    stale = file.ingestion
    refused: list[str] = []

    def decided() -> None:
        try:
            decide(file.deployment, stale)
        except LakegateError as error:
            refused.append(error.code)

    file.deployment.journal.strike("landing.put_over", Fault(decided, when))
    done, _ = file.mend(FIXED)
    decided()
    assert refused == ["MENDED", "SUPERSEDED"]
    file.deployment.settle()
    assert file.deployment.ingestion(done.ingestion).state is State.PUBLISHED
    assert on_main(file) == ["v2"]


@pytest.mark.parametrize("decide", DECISIONS)
def test_a_file_that_was_decided_about_is_not_mended(file: Rejected, decide: Decide) -> None:
    """A decision that came before the mended file landed wins: nothing is put."""
    file.deployment.script(file.landed, passed)
    file.meanwhile = lambda: decide(file.deployment, file.landed)
    with pytest.raises(LakegateError, match="MOVED_ON|NOT_REJECTED"):  # noqa: RUF043
        file.mend(FIXED)
    file.deployment.settle()
    assert on_main(file) == ["v1"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_mend_that_died_is_repeated(file: Rejected, when: When) -> None:
    """After a crash around its upload, the same command finishes, with both names in the log."""
    file.deployment.journal.strike("landing.put_over", Fault(die, when))
    with pytest.raises(ProcessDied):
        file.mend(FIXED)
    done, _ = file.mend(FIXED)
    file.deployment.settle()
    new = file.deployment.ingestion(done.ingestion)
    assert (new.state, new.mends) == (State.PUBLISHED, Mends(file.ingestion.id, "fixed.csv"))
    assert on_main(file) == ["v2"]


def test_an_interrupted_mend_is_given_up_by_a_discard(file: Rejected) -> None:
    """If nothing landed, a discard lets the file be replayed again."""
    file.deployment.kill("landing.put_over")
    with pytest.raises(ProcessDied):
        file.mend(FIXED, by="Ann")
    with pytest.raises(LakegateError, match=r"being mended by Ann, .*\n.*lakegate discard"):
        file.deployment.replay(file.landed)
    file.deployment.discard(file.landed)
    file.deployment.script(file.landed, passed)
    file.deployment.replay(file.landed)
    file.deployment.settle()
    assert on_main(file) == ["v1"]


def test_a_mended_file_that_landed_is_not_given_up(file: Rejected) -> None:
    """After a discard the file waits for a version that S3 has and the ledger has not yet."""
    file.deployment.journal.strike("landing.put_over", Fault(die, "after"))
    with pytest.raises(ProcessDied):
        file.mend(FIXED)
    file.deployment.discard(file.landed)
    file.deployment.script(file.landed, passed)
    with pytest.raises(LakegateError, match=r"MENDED.*has landed.*\nWait"):
        file.deployment.replay(file.landed)
    file.deployment.settle()
    assert on_main(file) == ["v2"]


def test_without_the_right_to_put_nothing_is_held_up(file: Rejected) -> None:
    """A mend that surely put nothing leaves the file to other decisions."""

    def denied() -> None:
        raise RightMissing("the role ann lacks the right s3:PutObject")

    file.deployment.journal.strike("landing.put_over", Fault(denied))
    with pytest.raises(RightMissing):
        file.mend(FIXED)
    file.deployment.publish_anyway(file.landed)
    file.deployment.settle()
    assert on_main(file) == ["v1"]


def test_rows_left_out_stay_unless_they_are_to_go(file: Rejected) -> None:
    """A broken row that the correction lacks is kept as it was; on request it is removed."""
    left, kept = file.mend(b"_line,_reason,id\n3,,2\n")
    assert (left.replaced, left.removed, left.left) == (1, 0, 1)
    assert kept == b"id\n1\n2\n\n3\ny\n"


def test_rows_that_nobody_corrected_are_no_replaced_ones(file: Rejected) -> None:
    """A row that stands in the correction as it was written out is left as it is."""
    _, out = file.write()
    done, mended = file.mend(re.sub(rb"(?m)^3,(.*),[^,]*$", rb"3,\1,2", out))
    assert (done.replaced, done.removed, done.left) == (1, 0, 1)
    assert mended == b"id\n1\n2\n\n3\ny\n"


def test_rows_left_out_are_removed_on_request(file: Rejected) -> None:
    """With `drop_missing` the broken rows that the correction lacks are not in the mended file."""
    done, mended = file.mend(b"_line,_reason,id\n", drop_missing=True)
    assert (done.replaced, done.removed, done.left) == (0, 2, 0)
    assert mended == b"id\n1\n\n3\n"


def test_a_correction_without_a_change_is_refused(file: Rejected) -> None:
    """The rows as they were written out bring nothing new, so nothing lands."""
    _, out = file.write()
    with pytest.raises(LakegateError, match=r"NOTHING_MENDED.*fixed.csv changes no row"):
        file.mend(out)
    assert len(list(file.deployment.landing.landed())) == 1


@pytest.mark.parametrize("cut", [b"\x1f\x8b\x08\x00", gzip.compress(FIXED, mtime=0)[:-9]])
def test_a_correction_that_cannot_be_read_is_refused(file: Rejected, cut: bytes) -> None:
    """A damaged file is named, and nothing lands."""
    with pytest.raises(LakegateError, match=r"UNREADABLE_FILE.*fixed.csv.*\nNothing was"):
        file.mend(cut)
    assert len(list(file.deployment.landing.landed())) == 1


def test_broken_rows_are_for_their_owner_alone(file: Rejected) -> None:
    """Nobody else can read the file, it is never overwritten, and hidden values are announced."""
    written, _ = file.write()
    assert (file.folder / "broken").stat().st_mode & 0o777 == 0o600
    assert not written.is_secret
    with pytest.raises(LakegateError, match=r"FILE_EXISTS.*\n"):
        file.write()
    file.deployment.ask(format="csv", allowSamples="false")
    assert file.write("other")[0].is_secret


def test_a_folder_that_is_not_there_is_told_at_once(file: Rejected) -> None:
    """Nobody waits for rows that cannot be written, or is told to delete a file that is not."""
    with pytest.raises(LakegateError, match=r"no folder .*\nMake it"):
        file.write("missing/broken.csv")
    assert file.asked == []


def test_what_else_failed_is_said(deployment: Scenario, tmp_path: Path) -> None:
    """Checks that no row breaks are named, but not those that follow from broken rows."""
    follow = tuple(replace(OTHER, id=each) for each in (QUARANTINE_LIMIT, HAS_ROWS))
    file = Rejected(deployment, BODY, BROKEN, tmp_path, failed=(NULL, OTHER, *follow))
    written, _ = file.write()
    assert written.others == ("1 row (the contract allows at least 2)",)


@pytest.mark.parametrize("failed", [OTHER, REPEATED])
def test_what_no_row_breaks_is_refused(deployment: Scenario, tmp_path: Path, failed: Any) -> None:
    """A number of rows, or a key that the table has, is no fault of single rows of the file."""
    file = Rejected(deployment, BODY, BROKEN, tmp_path, failed=(failed,))
    with pytest.raises(
        LakegateError, match=r"NOT_BY_ROWS.*no row can be mended.*\nCorrect the whole"
    ):
        file.write()
    assert file.asked == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("- {property: format, value: parquet}", "parquet files cannot be mended"),
        (TRANSFORM, "transform"),
    ],
)
def test_other_formats_are_refused(
    deployment: Scenario, tmp_path: Path, settings: str, told: str
) -> None:
    """The message says that such a file is corrected as a whole."""
    file = Rejected(deployment, BODY, BROKEN, tmp_path, settings=settings)
    with pytest.raises(LakegateError, match=rf"NOT_BY_ROWS.*{told}.*\nCorrect the whole file"):
        file.write()


def test_a_deleted_file_cannot_be_mended(tmp_path: Path) -> None:
    """Neither a version that is gone, nor a key that somebody deleted, is mended."""
    file = Rejected(Scenario(), BODY, BROKEN, tmp_path)
    file.deployment.landing.delete(NAME)
    with pytest.raises(LakegateError, match="MISSING_OBJECT"):
        file.mend(FIXED)
    assert not file.ingestion.decisions.mending
    file.deployment.landing.forget(file.landed)
    with pytest.raises(LakegateError, match=r"OBJECT_GONE.*\n"):
        file.write()


def test_a_published_file_or_a_batch_is_not_mended(file: Rejected) -> None:
    """Only one rejected file is, and the message says what another is."""
    good = file.deployment.ended("shop/orders/good.csv")
    file.landed = good.landed
    with pytest.raises(LakegateError, match=r"NOT_REJECTED.*published.*\nDetails: "):
        file.write()
    change = file.deployment.change(script=rejected)
    file.deployment.settle()
    file.landed = change
    with pytest.raises(LakegateError, match="NOT_ONE_FILE"):
        file.write()


def test_older_rows_do_not_replace_newer_ones(deployment: Scenario, tmp_path: Path) -> None:
    """Where rows replace others, a file is not mended once one that landed later is on main."""
    how: dict[str, Any] = {"settings": UPSERT, "failed": (UNREADABLE,), "of_id": "primaryKey: true"}
    file = Rejected(deployment, BODY, BROKEN, tmp_path, **how)
    deployment.clock.pass_(1)
    later = deployment.ended("shop/orders/later.csv")
    assert later.state is State.PUBLISHED
    with pytest.raises(LakegateError, match=r"OUT_OF_ORDER.*on main already.*\n"):
        file.write()
