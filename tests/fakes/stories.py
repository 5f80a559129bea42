"""Stories for the machine, drawn and cut down by hypothesis."""

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from functions.telemetry import logger, metrics
from tests.fakes.deployment import OTHER_TABLE, TABLE
from tests.fakes.machine import (
    CHANGES,
    CONTRACTS,
    KEYS,
    POINTS,
    Ask,
    Batch,
    Change,
    Contract,
    Decide,
    Deliver,
    Event,
    File,
    Forget,
    Kind,
    Land,
    Lose,
    LoseEntry,
    Meddle,
    RunJob,
    Stage,
    Story,
    Strike,
    Time,
    tell,
)

Events = st.SearchStrategy[Event]


def flat(*parts: Sequence[Event]) -> list[Event]:
    """One part after the other."""
    return [event for part in parts for event in part]


def weighted(weights: dict[Events, int]) -> Events:
    """One of these, as often as its weight says."""
    often = [strategy for strategy, weight in weights.items() for _ in range(weight)]
    return st.sampled_from(often).flatmap(lambda strategy: strategy)


# Most files are good and for one table, and most events are those of an ordinary day: so the faults
# and what is rare meet publishers in the middle of their work, and in each other's way.
_NTH = st.integers(0, 3)
_FILES = st.one_of(st.just(File.GOOD), st.sampled_from(File))
# Of these the landed object itself is no file, or none for a job.
_NO_MANIFESTS = (File.EMPTY, File.UNCLAIMED, File.MARKER)
_OF_BATCHES = st.one_of(
    st.just(File.GOOD), st.sampled_from([file for file in File if file not in _NO_MANIFESTS])
)
_CALM: dict[Events, int] = {
    st.builds(Land, st.sampled_from(KEYS), _FILES, st.sampled_from([None, b"the same bytes"])): 6,
    st.builds(Ask, st.integers(1, 2)): 1,
    st.builds(Batch, st.sampled_from(["monday", "tuesday"]), _OF_BATCHES): 1,
    st.builds(Deliver, _NTH, st.booleans()): 2,
    st.builds(RunJob, _NTH): 2,
    st.just(Time.COURSE): 3,
    st.sampled_from([Time.SWEEP, Time.REDELIVERY, Time.REST]): 1,
    st.builds(Change, st.sampled_from(sorted(CHANGES)), st.sampled_from([TABLE, OTHER_TABLE])): 2,
    st.one_of(
        st.builds(Lose, _NTH),
        st.builds(Forget, _NTH),
        st.builds(LoseEntry, _NTH),
        st.builds(Contract, st.sampled_from(list(CONTRACTS))),
        st.builds(Meddle, _NTH, st.booleans()),
        st.builds(Decide, _NTH, st.booleans()),
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
ORDERS = KEYS[:3]
# What a story may begin with, so that it is soon where things get in each other's way.
NOTHING: Story = ()
A_TABLE: Story = (Change("append", TABLE),)
MERGED_BUT_NOT_RECORDED: Story = (
    Land(KEYS[0]),
    Time.COURSE,
    Strike("ledger.save_all", Kind.DIES_BEFORE),
    Deliver(),
)
WAITING_TOGETHER: Story = (
    *A_TABLE,
    *map(Land, (*ORDERS, ORDERS[0])),
    Time.COURSE,
    *(Strike("catalog.merge", Kind.UNAVAILABLE, skipped) for skipped in (1, 2, 3, 4)),
    Time.COURSE,
)
A_LATE_FILE_AND_A_GROUP: Story = (
    *WAITING_TOGETHER,
    Land(ORDERS[0]),
    Deliver(3),
    RunJob(),
    Strike("catalog.delete_branch", Kind.DIES_BEFORE),
    Strike("catalog.merge", Kind.HANGS_BEFORE, 0, (Deliver(),)),
    Deliver(3),
)
AN_UNREADABLE_MESSAGE: Story = (Time.GARBAGE, Strike("alerts.post", Kind.DIES_BEFORE))
A_SWAP: Story = (*WAITING_TOGETHER, Strike("ledger.save", Kind.UNAVAILABLE, 1), Deliver())
A_GROUP_LOSES_A_MEMBER: Story = (
    *WAITING_TOGETHER,
    Strike("catalog.merge", Kind.UNAVAILABLE, 1),
    Deliver(),
    LoseEntry(2),
    Deliver(),
)
VERSIONS: Story = (Contract("replaces versions"), Land(), Time.REST, Land(), Time.COURSE)
A_CHANGE: Story = (Land(), Time.REST, Ask(), Land(ORDERS[1]), Time.COURSE)
BATCHES: Story = (
    *A_TABLE,
    Change("append", OTHER_TABLE),
    Batch(),
    Land(),
    Batch("tuesday"),
    Time.COURSE,
)
A_LOST_ENTRY: Story = (Land(), Deliver(), RunJob(), LoseEntry(0))
A_LATE_TWIN: Story = (
    Time.SILENCE,
    Land(ORDERS[0], body=b"the same bytes"),
    Time.SOUND,
    Land(ORDERS[1], body=b"the same bytes"),
    Time.COURSE,
    Time.COURSE,
)
A_LATE_DECISION: Story = (
    Land(file=File.REJECTED),
    Time.REST,
    Strike("catalog.merge", Kind.DIES_BEFORE),
    Decide(publishes=True),
    Land(),
    Deliver(),
    RunJob(),
)
A_MEDDLER: Story = (Land(), Deliver(), Meddle())
OPENINGS = (
    NOTHING,
    A_TABLE,
    MERGED_BUT_NOT_RECORDED,
    WAITING_TOGETHER,
    A_LATE_FILE_AND_A_GROUP,
    VERSIONS,
    A_CHANGE,
    BATCHES,
    A_LATE_DECISION,
)
# Four short lists are longer than a long one.
_PARTS = (st.lists(weighted({**_CALM, _FAULT: 8}), max_size=10),) * 4


def explore(
    runs: int,
    start: int,
    told: Callable[[Stage], None],
    *,
    openings: Sequence[Story] = OPENINGS,
    shrinks: bool = True,
) -> None:
    """Tell so many different stories, the same ones for the same `start`.

    Raises AssertionError at the first that breaks a promise, cut down where it `shrinks`.
    """
    stories = st.builds(flat, st.sampled_from(openings), *_PARTS)
    explore_with(lambda story: told(tell(story)), stories, runs, start, shrinks=shrinks)


def explore_with(
    play: Callable[[Story], object],
    stories: st.SearchStrategy[Story],
    runs: int,
    start: int,
    *,
    shrinks: bool = True,
) -> None:
    """Play so many of these stories, the same ones for the same `start`; raises as `explore`."""

    @seed(start)
    @settings(
        max_examples=runs,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(stories)
    def every_promise_is_kept(story: Story) -> None:
        metrics.clear_metrics()
        play(story)

    level = logger.log_level
    logger.setLevel("CRITICAL")
    try:
        every_promise_is_kept()
    finally:
        logger.setLevel(level)
