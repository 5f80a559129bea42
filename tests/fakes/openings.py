"""Beginnings of stories after which processes soon interfere with each other."""

from tests.fakes.deployment import OTHER_TABLE, TABLE
from tests.fakes.events import (
    KEYS,
    Ask,
    Batch,
    Budget,
    Change,
    Contract,
    Decide,
    Deliver,
    Land,
    LookBeyond,
    LoseEntry,
    Meddle,
    Restore,
    RunJob,
    Share,
    SharedRunDies,
    Strike,
    Time,
)
from tests.fakes.forgeries import Forge, Forgery
from tests.fakes.stage import File, Kind, Story
from tests.fakes.upkeep_events import CleanUp, Compact

ORDERS = KEYS[:3]
NOTHING: Story = ()
A_TABLE: Story = (Change("append", TABLE),)
MERGED_BUT_NOT_RECORDED: Story = (
    Land(KEYS[0]),
    Time.COURSE,
    Strike("ledger.save_each", Kind.DIES_BEFORE),
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
ONE_BY_ONE: Story = (
    Contract("replaces rows"),
    Land(),
    Time.REST,
    *map(Land, ORDERS),
    Time.COURSE,
)
A_QUEUED_FILE_AND_A_KEY: Story = (
    Share(),
    Land(KEYS[0]),
    Deliver(),
    SharedRunDies(0, (Time.WORK_LOST, Contract("merges rows"), Land(KEYS[1]), Deliver(), RunJob())),
)
A_LATE_EVENT: Story = (
    Contract("replaces rows"),
    Land(),
    Time.REST,
    Time.SILENCE,
    Land(ORDERS[1]),
    Time.SOUND,
    Land(ORDERS[2]),
    Time.COURSE,
    Time.COURSE,
)
A_REJECTED_ONE_AND_A_LATER: Story = (
    Contract("merges rows"),
    Land(ORDERS[0], File.REJECTED),
    Land(ORDERS[1]),
    Time.REST,
)
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
A_VERSION_APPROVED_IN_ORDER: Story = (Contract("merges the latest rows"), *A_LATE_DECISION)
A_MEDDLER: Story = (Land(), Deliver(), Meddle())
BEYOND: Story = (LookBeyond(), *A_TABLE, *map(Land, ORDERS))
FAILED: Story = (
    *A_TABLE,
    Land(ORDERS[0], File.REJECTED),
    Land(ORDERS[1], File.CORRUPT),
    Land(ORDERS[2]),
    Time.COURSE,
)
SHARED: Story = (Share(), *map(Land, ORDERS), Deliver(), Deliver(), Deliver())
A_SHARED_GROUP: Story = (*A_TABLE, *SHARED, RunJob())
A_GROUP_WITH_A_FORGED_ROW: Story = (*A_SHARED_GROUP, Forge(Forgery.GROUP_ROWS))
A_BROKEN_SHARED_RUN: Story = (*A_TABLE, *SHARED, SharedRunDies(4), Time.COURSE)
# Together, these make every call of the service.
A_DAY: Story = (
    Time.GARBAGE,
    *A_TABLE,
    Land(ORDERS[0], body=b"the same bytes"),
    Land(ORDERS[1], body=b"the same bytes"),
    Land(ORDERS[2], File.REJECTED),
    Batch(),
    Time.COURSE,
    Time.COURSE,
    Ask(),
    Time.COURSE,
    Time.REDELIVERY,
    Time.SWEEP,
)
A_DAY_OF_VERSIONS: Story = (
    Contract("replaces versions"),
    Land(),
    Time.REST,
    Land(),
    Land(ORDERS[1], File.CRASHING_ONCE),
    Time.COURSE,
    Time.SWEEP,
)
A_DAY_OF_LOSS: Story = (Land(), Deliver(), LoseEntry(), Time.SWEEP)
A_DAY_OF_SHARED_RUNS: Story = (
    Share(),
    *A_TABLE,
    Land(ORDERS[0]),
    Land(ORDERS[1], File.REJECTED),
    Land(ORDERS[2]),
    Time.COURSE,
    Time.COURSE,
    Land(ORDERS[0], File.CRASHING_ONCE),
    Land(ORDERS[1]),
    Time.COURSE,
    Time.SWEEP,
    Time.COURSE,
)
A_DAY_OF_COMPACTION: Story = (
    *map(Land, ORDERS[:2]),
    Time.REST,
    Compact(),
    Time.COURSE,
    Time.SWEEP,
    Land(ORDERS[2]),
    Time.COURSE,
    Time.COURSE,
    Time.SWEEP,
)
A_DAY_OF_DELETION: Story = (
    *map(Land, ORDERS[:2]),
    Land(ORDERS[2], File.REJECTED),
    Time.REST,
    CleanUp(),
    Land(ORDERS[2]),
    Deliver(),
    RunJob(),
    LoseEntry(-1),
    CleanUp(),
    Time.REST,
    CleanUp(),
)
A_DAY_OF_TURNS: Story = (
    Share(),
    Contract("merges rows"),
    *(each for key in ORDERS for each in (Land(key), Deliver())),
    Time.COURSE,
    Time.COURSE,
)
A_DAY_WITH_A_BUDGET: Story = (
    Budget(is_late=True),
    Land(ORDERS[0]),
    Time.COURSE,
    Deliver(),
    Budget(),
    Time.SWEEP,
    Share(),
    *A_TABLE,
    Land(ORDERS[1]),
    Time.COURSE,
    Time.COURSE,
)
A_RESTORATION: Story = (
    *(each for key in ORDERS for each in (Land(key), Time.REST)),
    Land(ORDERS[0]),
    Restore(2),
    Time.COURSE,
)
WITHOUT_A_CONTRACT: Story = (*WAITING_TOGETHER, Contract("claims other keys"))
A_TIGHT_BUDGET: Story = (
    Budget(dollars=1),
    *A_TABLE,
    *map(Land, (*KEYS, *KEYS)),
    Time.COURSE,
    Time.COURSE,
)
A_DAY_OF_ANOTHER_CONTRACT: Story = (*WAITING_TOGETHER, Contract("replaces rows"), Time.COURSE)
DAYS = (
    A_DAY,
    A_DAY_OF_ANOTHER_CONTRACT,
    A_DAY_WITH_A_BUDGET,
    A_DAY_OF_TURNS,
    A_DAY_OF_VERSIONS,
    A_DAY_OF_LOSS,
    A_DAY_OF_SHARED_RUNS,
    A_DAY_OF_COMPACTION,
    A_DAY_OF_DELETION,
)
TURNS: Story = (
    *SHARED,
    *(Contract("merges rows"), Land(), Deliver()),
    *(each for key in KEYS for each in (Land(key), Time.COURSE)),
    *(Deliver() for _ in KEYS),
)
COMPARED: Story = (
    LookBeyond(),
    *SHARED,
    *(each for key in KEYS for each in (Land(key), Time.COURSE)),
    *(Deliver() for _ in KEYS),
)
LATEST_TURNS: Story = (*TURNS, Contract("merges the latest rows"), *map(Land, KEYS), Deliver())
