"""Stories for the machine, drawn and shortened by hypothesis."""

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from functions.telemetry import logger, metrics
from tests.fakes.deployment import OTHER_TABLE, TABLE
from tests.fakes.events import (
    CHANGES,
    CONTRACTS,
    KEYS,
    Ask,
    Batch,
    Budget,
    Change,
    Contract,
    Decide,
    Deliver,
    Discard,
    Gate,
    Hours,
    Land,
    Lose,
    LoseEntry,
    LoseRun,
    Meddle,
    Restore,
    Retract,
    RunJob,
    Share,
    SharedRunDies,
    Strike,
    Time,
)
from tests.fakes.forgeries import Forge, Forgery
from tests.fakes.machine import tell
from tests.fakes.openings import (
    A_BROKEN_SHARED_RUN,
    A_CHANGE,
    A_GROUP_WITH_A_FORGED_ROW,
    A_LATE_DECISION,
    A_LATE_EVENT,
    A_LATE_FILE_AND_A_GROUP,
    A_QUEUED_FILE_AND_A_KEY,
    A_RESTORATION,
    A_SHARED_GROUP,
    A_TABLE,
    A_TIGHT_BUDGET,
    A_VERSION_APPROVED_IN_ORDER,
    BATCHES,
    COMPARED,
    LATEST_TURNS,
    MERGED_BUT_NOT_RECORDED,
    NOTHING,
    ONE_BY_ONE,
    SHARED,
    TURNS,
    VERSIONS,
    WAITING_TOGETHER,
    WITHOUT_A_CONTRACT,
)
from tests.fakes.points import POINTS
from tests.fakes.restorations import Restoration
from tests.fakes.stage import Event, File, Kind, Stage, Story
from tests.fakes.upkeep_events import Amiss, CleanUp, CleanUpAmiss, Compact

Events = st.SearchStrategy[Event]


def flat(*parts: Sequence[Event]) -> list[Event]:
    """Return the events of all parts, one part after the other."""
    return [event for part in parts for event in part]


def weighted(weights: dict[Events, int]) -> Events:
    """Return a strategy that draws from each of these as often as its weight says."""
    often = [strategy for strategy, weight in weights.items() for _ in range(weight)]
    return st.sampled_from(often).flatmap(lambda strategy: strategy)


# Most files are good and for one table, and most events are ordinary: thus faults and rare events
# strike while several ingestions of a table are being published.
_NTH = st.integers(0, 3)
_FILES = st.one_of(st.just(File.GOOD), st.sampled_from(File))
# A manifest cannot have the keys and sizes of these.
_NO_MANIFESTS = (File.EMPTY, File.UNCLAIMED, File.MARKER)
_OF_BATCHES = st.one_of(
    st.just(File.GOOD), st.sampled_from([file for file in File if file not in _NO_MANIFESTS])
)
_WHILE_IT_HANGS = (None, (), (Time.COURSE,), (Time.COURSE, Time.COURSE, Land(KEYS[1])))
_CALM: dict[Events, int] = {
    st.builds(Land, st.sampled_from(KEYS), _FILES, st.sampled_from([None, b"the same bytes"])): 6,
    st.builds(Ask, st.integers(1, 2)): 1,
    st.builds(Retract, _NTH): 1,
    st.builds(Restore, _NTH): 1,
    st.builds(Gate, st.integers(0, 1), st.booleans(), st.booleans()): 1,
    st.builds(Batch, st.sampled_from(["monday", "tuesday"]), _OF_BATCHES): 1,
    st.builds(Deliver, _NTH, st.booleans()): 2,
    st.builds(RunJob, _NTH): 2,
    st.just(Time.COURSE): 3,
    st.builds(SharedRunDies, st.integers(0, 35), st.sampled_from(_WHILE_IT_HANGS)): 1,
    st.sampled_from([Time.SWEEP, Time.REDELIVERY, Time.REST]): 1,
    st.builds(Change, st.sampled_from(sorted(CHANGES)), st.sampled_from([TABLE, OTHER_TABLE])): 2,
    st.one_of(
        st.builds(Compact, st.sampled_from([0, 0, 0, 1])),
        st.builds(CleanUp, st.sampled_from([0.5, 2])),
        st.builds(CleanUpAmiss, st.sampled_from(Amiss)),
    ): 2,
    st.builds(Forge, st.sampled_from(Forgery), _NTH): 1,
    st.one_of(
        st.builds(Share, st.integers(0, 1)),
        st.builds(Budget, st.booleans(), st.sampled_from([1, 1_000_000])),
        st.builds(Lose, _NTH),
        st.builds(LoseRun, _NTH),
        st.builds(LoseEntry, _NTH),
        st.builds(Contract, st.sampled_from(list(CONTRACTS))),
        st.builds(Meddle, _NTH, st.booleans()),
        st.builds(Decide, _NTH, st.booleans(), st.booleans()),
        st.builds(Discard, _NTH, st.booleans()),
        st.builds(Hours, st.sampled_from([0.5, 4])),
        st.sampled_from(Time),
    ): 2,
}
_MEANWHILE: st.SearchStrategy[Sequence[Event]] = st.one_of(
    st.sampled_from([(Time.SWEEP,), (Time.REDELIVERY, Time.REST)]),
    st.lists(weighted(_CALM), max_size=4),
)
_FAULT = st.builds(
    Strike, st.sampled_from(POINTS), st.sampled_from(Kind), st.integers(0, 3), _MEANWHILE
)
OPENINGS = (
    NOTHING,
    A_TABLE,
    MERGED_BUT_NOT_RECORDED,
    WAITING_TOGETHER,
    A_LATE_FILE_AND_A_GROUP,
    VERSIONS,
    ONE_BY_ONE,
    A_LATE_EVENT,
    A_VERSION_APPROVED_IN_ORDER,
    A_CHANGE,
    BATCHES,
    A_LATE_DECISION,
    SHARED,
    A_SHARED_GROUP,
    A_GROUP_WITH_A_FORGED_ROW,
    A_BROKEN_SHARED_RUN,
    A_QUEUED_FILE_AND_A_KEY,
    TURNS,
    LATEST_TURNS,
    COMPARED,
    A_TIGHT_BUDGET,
    A_RESTORATION,
    WITHOUT_A_CONTRACT,
)
# Four short lists are longer than a long one.
_PART = st.lists(weighted({**_CALM, _FAULT: 8}), max_size=10)


def explore(
    runs: int,
    start: int,
    told: Callable[[Stage], None],
    *,
    openings: Sequence[Story] = OPENINGS,
) -> None:
    """Tell this number of different stories, the same ones for the same `start`.

    Raise AssertionError at the first that breaks a promise, shortened.
    """
    explore_with(lambda story: told(tell(story)), stories(openings), runs, start)


def stories(openings: Sequence[Story] = OPENINGS) -> st.SearchStrategy[Story]:
    """Return a strategy that draws stories with one of these beginnings."""
    return st.builds(flat, st.sampled_from(openings), *(_PART,) * 4)


def restorations() -> st.SearchStrategy[Story]:
    """Return a strategy that draws stories in which the catalog is restored to a backup.

    Others go on between its restoration and the command, and the command fails and is repeated.
    """
    return st.builds(
        flat,
        st.sampled_from(OPENINGS),
        _PART,
        st.just((Restoration.BACKUP,)),
        _PART,
        _PART,
        st.just((Restoration.RESTORE,)),
        st.lists(weighted(_CALM), max_size=3),
        st.just((Restoration.REALIGN,)),
        _PART,
        st.just((Restoration.REALIGNED, Restoration.SETTLED)),
    )


def explore_with(
    play: Callable[[Story], object],
    drawn: st.SearchStrategy[Story],
    runs: int,
    start: int,
    *,
    shrinks: bool = True,
) -> None:
    """Play this number of these stories, the same ones for the same `start`; raise as `explore`."""

    @seed(start)
    @settings(
        max_examples=runs,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(drawn)
    def every_promise_is_kept(story: Story) -> None:
        metrics.clear_metrics()
        play(story)

    level = logger.log_level
    logger.setLevel("CRITICAL")
    try:
        every_promise_is_kept()
    finally:
        logger.setLevel(level)
