"""The events of a story in which upkeep works beside files that land."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from math import ceil

from functions.adapters.nessie import MAIN
from functions.expire import answer
from functions.operations.compaction.compact import start_due
from functions.operations.upkeep.daily import upkeep
from functions.operations.upkeep.dead_files import Accepted
from functions.operations.upkeep.recognition import InDoubt
from lakegate import times
from lakegate.errors import LakegateError
from tests.fakes.deployment import Deployment
from tests.fakes.faults import ProcessDied
from tests.fakes.files_in_the_lake import check_files, check_only_needed_left, orphans
from tests.fakes.promises import unwatched
from tests.fakes.stage import A_DAY, Stage

_DAYS_TO_DELETE = 4  # a first look, one that a person accepts, and two looks at each file


@dataclass(frozen=True)
class Compact:
    """The daily schedule starts the compaction of each table with two small data files.

    From now on the jobs that rewrite lose the rows of so many data files.
    """

    loses: int = 0

    def happen(self, stage: Stage) -> None:
        """Start them; sweeps do the rest."""
        stage.deployment.compactions_lose = self.loses
        stage.deployment.tables.fewest = 2
        stage.deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            list(start_due(stage.deployment.adapters))
        stage.excused |= {"errored ROWS_SCATTERED", "rejected CANNOT_REPLACE"}


@dataclass(frozen=True)
class CleanUp:
    """Days pass, and each day the daily function discards what has expired and deletes dead files.

    Of the last day only a part may pass. If the function was not sure of main for long, a person
    accepts main as it is.
    """

    days: float = 2

    def happen(self, stage: Stage) -> None:
        """Run the function each day; it may fail."""
        deployment = stage.deployment
        deployment.keep(1)
        for day in range(ceil(self.days)):
            stage.pass_day(min(1, self.days - day))
            deployment.journal.part()
            with suppress(LakegateError, ProcessDied), accepting(deployment):
                answer(deployment.adapters, {})
        check_files(deployment)


@contextmanager
def accepting(deployment: Deployment) -> Iterator[None]:
    """Let a person accept main where upkeep was not sure of it for long. Raises what it raises."""
    try:
        yield
    except InDoubt as doubt:
        if doubt.code == "LONG_UNSEEN":
            upkeep(deployment.adapters, Accepted(head=deployment.catalog.head(MAIN)))
        raise


class Amiss(Enum):
    """What is wrong while upkeep deletes dead files, and right again afterwards."""

    EMPTY = "Nessie has lost everything, and was set up anew"
    SET_BACK = "main is set back by two commits"
    AHEAD = "the function's clock is 40 days ahead"
    BEHIND = "the function's clock is 40 days behind"

    def of(self, deployment: Deployment) -> AbstractContextManager[object]:
        """Return a context in which it is so."""
        return _AMISS[self](deployment)


@dataclass(frozen=True)
class CleanUpAmiss:
    """Two days pass, each with its upkeep, and then it runs while something is wrong."""

    what: Amiss

    def happen(self, stage: Stage) -> None:
        """Run it, with nothing in between; it may refuse, and should."""
        deployment = stage.deployment
        deployment.keep(1)
        for _ in range(2):
            stage.pass_day()
            _upkeep(deployment)
        with self.what.of(deployment):
            _upkeep(deployment)
        check_files(deployment)


def clean_up_orphans(deployment: Deployment) -> bool:
    """Let upkeep run for days where jobs left data files that they never committed.

    A person accepts main where upkeep doubts. Return whether there were any. Raise AssertionError
    unless those, and only what else nobody can read, are deleted.
    """
    if not orphans(deployment):
        return False
    deployment.keep(1)
    for _ in range(_DAYS_TO_DELETE):
        deployment.clock.pass_(A_DAY)
        try:
            upkeep(unwatched(deployment))
        except InDoubt:
            upkeep(unwatched(deployment), Accepted(head=deployment.catalog.head(MAIN)))
    check_files(deployment)
    check_only_needed_left(deployment)
    return True


def _upkeep(deployment: Deployment) -> None:
    with suppress(LakegateError, ProcessDied), accepting(deployment):
        upkeep(replace(unwatched(deployment), now=deployment.adapters.now))


@contextmanager
def _empty(deployment: Deployment) -> Iterator[None]:
    backup = deployment.catalog.backup()
    deployment.catalog.lose()
    try:
        yield
    finally:
        deployment.catalog.restore(backup)


@contextmanager
def _set_back(deployment: Deployment) -> Iterator[None]:
    catalog = deployment.catalog
    log = [commit.hash for commit in catalog.log()]
    catalog.reset(MAIN, log[min(2, len(log) - 1)])
    try:
        yield
    finally:
        catalog.reset(MAIN, log[0])


def _off(days: int) -> Callable[[Deployment], AbstractContextManager[object]]:
    @contextmanager
    def off(deployment: Deployment) -> Iterator[None]:
        right = deployment.adapters
        wrong = deployment.clock.moment + timedelta(days=days)
        deployment.adapters = replace(right, now=lambda: times.text(wrong))
        try:
            yield
        finally:
            deployment.adapters = right

    return off


_AMISS: dict[Amiss, Callable[[Deployment], AbstractContextManager[object]]] = {
    Amiss.EMPTY: _empty,
    Amiss.SET_BACK: _set_back,
    Amiss.AHEAD: _off(40),
    Amiss.BEHIND: _off(-40),
}
