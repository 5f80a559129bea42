"""A deployment to which anything may happen, in any order: a story is a list of events.

`tell` lets a story happen, then lets everything take its course (faults that have not struck yet
strike then), and checks every promise. Stories are plain values, so hypothesis draws them, cuts a
failing one down to the few events that it takes, and prints it as something to paste into a test.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Protocol

from functions.model.ingestion import ALERTED, Ingestion, State
from functions.operations.expire import expire
from functions.operations.failed import publish_anyway, replay
from functions.pipeline.replace import CANNOT_REPLACE
from lakegate.errors import LakegateError
from lakegate.landing import batch_name, branch_name, fresh_branch, ingestion_id
from tests.fakes import job
from tests.fakes.deployment import ORDERS, OTHER_TABLE, RETURNS, TABLE, Deployment
from tests.fakes.faults import Fault, ProcessDied, When, die, unavailable
from tests.fakes.job import Script
from tests.fakes.others import Others
from tests.fakes.processes import Process, pause
from tests.fakes.promises import check_promises, left_behind

BATCH = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}
KEYS = (*(f"shop/orders/{name}.parquet" for name in "abc"), "shop/returns/a.parquet")

# Every call of the service to an outside system.
POINTS = (
    "landing.landed",
    "landing.newest",
    "landing.manifest",
    "lake.contracts",
    "lake.put_change",
    "lake.change",
    "lake.changes",
    "lake.report",
    "lake.reports",
    "lake.baselines",
    "lake.put_baselines",
    "ledger.begin",
    "ledger.get",
    "ledger.save",
    "ledger.save_all",
    "ledger.together",
    "ledger.waiting",
    "ledger.going_first",
    "ledger.same_content",
    "ledger.versions",
    "ledger.known",
    "ledger.unfinished",
    "ledger.needs_recording",
    "ledger.in_state",
    "catalog.create_branch",
    "catalog.head",
    "catalog.tip",
    "catalog.metadata",
    "catalog.branches",
    "catalog.changed_tables",
    "catalog.merge",
    "catalog.log",
    "catalog.delete_branch",
    "tables.append_again",
    "tables.replace",
    "tables.enter",
    "tables.rows",
    "jobs.start",
    "jobs.get",
    "jobs.spec",
    "jobs.runs",
    "alerts.post",
    "announcements.send",
    "dead_uploads.read",
    "dead_uploads.delete",
    "dead_job_runs.read",
    "dead_job_runs.delete",
    "dead_alerts.read",
    "dead_alerts.delete",
)


class File(Enum):
    """A landed file: how its job run goes, and where it must end."""

    GOOD = (job.passed, "published")
    WARNED = (job.warned, "published")
    CRASHING_ONCE = (job.crashed_once, "published")
    REJECTED = (job.rejected, "rejected CHECKS_FAILED")
    CORRUPT = (job.errored, "errored CORRUPT_FILE")
    CRASHING = (job.crashed, "errored JOB_FAILED")
    CANCELLED = (job.cancelled, "errored JOB_CANCELLED")
    SILENT = (job.silent, "errored NO_REPORT")
    CONTRADICTED = (job.contradicted, "errored CONTRADICTION")
    CARELESS = (job.careless, "rejected CHECKS_FAILED")
    IDLE = (job.idle, "errored CONTRADICTION")
    HOLLOW = (job.hollow, "errored CONTRADICTION")
    FOREIGN = (job.foreign, "errored FOREIGN_REPORT")
    EMPTY = (job.passed, "errored EMPTY_OBJECT")
    UNCLAIMED = (job.passed, "errored NO_CONTRACT")
    MARKER = (job.passed, "ignored IGNORED_KEY")

    @property
    def script(self) -> Script:
        """How its job run goes."""
        return self.value[0]

    @property
    def end(self) -> str:
        """Where it must end."""
        return self.value[1]

    def key(self, key: str) -> str:
        """The key that it lands under, near the given one."""
        folder, _, name = key.rpartition("/")
        return {File.UNCLAIMED: f"elsewhere/{name}", File.MARKER: f"{folder}/_{name}"}.get(
            self, key
        )


class Kind(Enum):
    """What a fault does to a call: when, and its effect; one that hangs lets others go on."""

    UNAVAILABLE = ("before", unavailable)
    DONE_YET_UNAVAILABLE = ("after", unavailable)
    DIES_BEFORE = ("before", die)
    DIES_AFTER = ("after", die)
    HANGS_BEFORE = ("before", None)
    HANGS_AFTER = ("after", None)

    @property
    def when(self) -> When:
        """Before or after the call is made."""
        return "before" if self.value[0] == "before" else "after"

    @property
    def hangs(self) -> bool:
        """Whether others go on meanwhile."""
        return self.value[1] is None


class Event(Protocol):
    """One thing that may happen."""

    def happen(self, stage: "Stage") -> None:
        """Let it happen."""


@dataclass
class Stage:
    """Where a story happens, and what a test must know of it to judge its end.

    `files` are the landed ones by their ingestion's id, `struck` the points at which faults struck,
    `excused` the ends that a file may have besides its own, for what people did, `decided` are the
    ids of those on which a person decided, and `replaced` the branches that should have been gone.
    `forgotten` counts the entries and job runs that were lost. `cut_under` says of each fresh
    branch which version of the contract was in force when it was cut.
    """

    deployment: Deployment = field(default_factory=Deployment)
    files: dict[str, File] = field(default_factory=dict)
    struck: Counter[tuple[str, Kind]] = field(default_factory=Counter)

    excused: set[str] = field(default_factory=set)
    replaces_versions: bool = False
    lost_entries: bool = False
    lost_batches: bool = False
    refuses_batches: bool = False
    decided: set[str] = field(default_factory=set)
    forgotten: int = 0
    checks_whole_table: bool = False
    replaced: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    cut_under: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Have a second table, beside shop.orders, and watch each call and each merge."""
        self.deployment.journal.pause = pause
        self.deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
        self.deployment.journal.strike("catalog.merge", Fault(self._watch, times=float("inf")))
        cut = Fault(self._note_contract, "after", times=float("inf"))
        self.deployment.journal.strike("catalog.create_branch", cut)

    def _watch(self) -> None:
        """Undisturbed, nothing is merged before the branches that it replaces are deleted."""
        if not self.struck and not self.processes:
            there = set(self.deployment.catalog.branches("ingest/"))
            moved = [i for i in self.deployment.ledger.all() if i.branch.startswith("publish/")]
            own = (
                branch_name(i.table, i.landed.key, i.id, i.attempt) for i in moved if not i.ended
            )
            self.replaced += there & set(own)

    def _note_contract(self) -> None:
        """Remember which version of its contract was in force when a fresh branch was cut."""
        for name in self.deployment.catalog.branches(f"publish/{TABLE}/"):
            self.cut_under.setdefault(name, self.contract_version)

    @property
    def contract_version(self) -> int:
        """Return how often the contract of shop.orders was put."""
        stored = {each.contract.table: each for each in self.deployment.lake.contracts()}
        return int(stored[TABLE].version.removeprefix("v"))

    @property
    def hung(self) -> bool:
        """Whether some process hung while others went on."""
        return bool(self.processes) or any(kind.hangs for _, kind in self.struck)

    @property
    def under_way(self) -> list[Process]:
        """Return the processes that stand before one of their calls."""
        return [process for process in self.processes if not process.ended]


@dataclass(frozen=True)
class Land:
    """A file lands; a key that was there before gets another version."""

    key: str = KEYS[0]
    file: File = File.GOOD
    body: bytes | None = None

    def happen(self, stage: Stage) -> None:
        """Upload it; S3 announces it."""
        body = b"" if self.file is File.EMPTY else self.body
        landed = stage.deployment.land(self.file.key(self.key), body, self.file.script)
        stage.files[ingestion_id(landed)] = self.file
        if stage.checks_whole_table:
            row = str(len(stage.files) % 3)
            stage.deployment.keys[f"{landed.uri}@{landed.version}"] = frozenset({row})


@dataclass(frozen=True)
class Batch:
    """Files of both tables land, and the manifest that makes them one; again under a known name."""

    name: str = "monday"
    file: File = File.GOOD

    def happen(self, stage: Stage) -> None:
        """Upload all of it; its job run goes as that of its first file."""
        stage.deployment.clock.pass_(1)  # S3's listings tell no smaller times
        landed = stage.deployment.batch(self.name, BATCH, self.file.script)
        stage.files[ingestion_id(landed)] = self.file


@dataclass(frozen=True)
class Ask:
    """A person asks for a change of shop.orders, the same one for the same number."""

    nth: int = 1

    def happen(self, stage: Stage) -> None:
        """Ask as often as it takes; where there is no table yet, it cannot be done."""
        landed = stage.deployment.change(self.nth)
        if landed.key in {each.key for each in stage.deployment.lake.changes()}:
            stage.files[ingestion_id(landed)] = File.GOOD
        stage.excused |= {"errored TABLE_GONE"}
        stage.excused |= {"rejected CANNOT_REPLACE"} if stage.replaces_versions else set()


@dataclass(frozen=True)
class Deliver:
    """One waiting message is delivered, whichever it is; `again`: it will be once more."""

    nth: int = 0
    again: bool = False

    def happen(self, stage: Stage) -> None:
        """Have its Lambda work it off, or fail."""
        stage.deployment.deliver_one(self.nth, again=self.again)


@dataclass(frozen=True)
class RunJob:
    """One job run comes to its end, whichever it is."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Carry it out; EMR announces its end."""
        stage.deployment.run_one_job(self.nth)


@dataclass(frozen=True)
class Lose:
    """One waiting message is lost."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Let nobody ever see it."""
        stage.deployment.lose_one(self.nth)


class Time(Enum):
    """Something that concerns all of them."""

    COURSE = "all that waits is delivered once, and all job runs end"
    REDELIVERY = "every message ever sent is sent again"
    SWEEP = "the sweep comes by"
    GARBAGE = "a message comes that nobody can read"
    SILENCE = "from now on S3 and EMR announce nothing"
    SOUND = "from now on they announce again"
    REST = "everything goes on until nothing is left to do"

    def happen(self, stage: Stage) -> None:
        """Let it happen."""
        _IN_TIME[self](stage.deployment)


def _take_course(deployment: Deployment) -> None:
    deployment.deliver()
    deployment.run_jobs()


_IN_TIME: dict[Time, Callable[[Deployment], object]] = {
    Time.COURSE: _take_course,
    Time.REDELIVERY: Deployment.send_all_again,
    Time.SWEEP: Deployment.sweep,
    Time.GARBAGE: Deployment.send_garbage,
    Time.SILENCE: lambda deployment: setattr(deployment, "loses_events", True),
    Time.SOUND: lambda deployment: setattr(deployment, "loses_events", False),
    Time.REST: Deployment.settle,
}


@dataclass(frozen=True)
class Forget:
    """EMR forgets a job run that has not ended."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """As if it had never been."""
        jobs = stage.deployment.jobs
        if running := [run.id for run in jobs.runs() if not run.state.terminal]:
            run = running[self.nth % len(running)]
            stage.deployment.late.add(jobs.spec(run).report_key)  # of a driver that may go on
            jobs.lose(run)
            stage.forgotten += 1
            stage.excused |= {"errored JOB_LOST"}


@dataclass(frozen=True)
class LoseEntry:
    """The ledger loses an ingestion, whichever it is.

    Not where versions replace each other: a version that the ledger does not know is not replaced.
    Nor of a batch whose contracts refuse batches by now: begun again it errs before the sweep can
    restore it, and its first branch stays (docs/adr/0009-ledger-rebuild.md).
    """

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """As a table that was restored from a backup does."""
        known = [i.id for i in stage.deployment.ledger.all()]
        if known and not stage.replaces_versions:
            lost = stage.deployment.ledger.get(known[self.nth % len(known)])
            is_batch = bool(batch_name(lost.landed.key))
            if is_batch and stage.refuses_batches:
                return
            stage.deployment.ledger.lose(lost.id)
            stage.lost_entries = True
            stage.lost_batches |= is_batch
            stage.forgotten += 1


_KEY = "      - {name: key, logicalType: integer, quality: [{metric: duplicateValues, mustBe: 0, "
BEYOND = f"{_KEY}customProperties: [{{property: scope, value: table}}]}}]}}\n"
CONTRACTS: dict[str, tuple[str, set[str]]] = {
    "asks for another column": ("      - {name: more, logicalType: string}\n", set()),
    "replaces versions": (
        "customProperties: [{property: onNewVersion, value: replace}]\n",
        {"ignored SUPERSEDED", "rejected CANNOT_REPLACE", "errored NOT_IN_BATCH"},
    ),
    "holds duplicates": (
        "customProperties: [{property: onDuplicate, value: hold}]\n",
        {"rejected LIKELY_DUPLICATE", "errored NOT_IN_BATCH"},
    ),
    "is as it was": ("", set()),
}


@dataclass(frozen=True)
class Contract:
    """The owner of shop.orders changes its contract, and so how good files may end."""

    now: str = "replaces versions"

    def happen(self, stage: Stage) -> None:
        """Put it into the lake."""
        if self.now == "replaces versions" and stage.lost_entries:
            return
        if self.now == "holds duplicates" and stage.lost_batches:
            return
        text, ends = CONTRACTS[self.now]
        text = BEYOND * stage.checks_whole_table + text
        stage.deployment.lake.put_text(f"contracts/{TABLE}.yaml", (ORDERS + text).encode())
        stage.excused |= ends
        stage.replaces_versions |= self.now == "replaces versions"
        stage.refuses_batches |= self.now == "holds duplicates"


@dataclass(frozen=True)
class LookBeyond:
    """From now on no row of shop.orders may have a key that another row of the table has."""

    def happen(self, stage: Stage) -> None:
        """Put a contract that says so."""
        stage.checks_whole_table = True
        Contract("is as it was").happen(stage)
        stage.excused |= {"rejected CHECKS_FAILED"}


CHANGES: dict[str, Callable[[Others, str], None]] = {
    "append": Others.append,
    "delete": Others.delete,
    "compact": Others.compact,
    "add a column": Others.add_column,
    "require a column": Others.require_column,
    "drop": Others.drop,
    "recreate": Others.recreate,
}


@dataclass(frozen=True)
class Change:
    """Somebody else changes a table on main."""

    what: str = "append"
    table: str = TABLE

    def happen(self, stage: Stage) -> None:
        """Change it."""
        CHANGES[self.what](stage.deployment.others, self.table)


@dataclass(frozen=True)
class Meddle:
    """Somebody with the job's token writes to an open branch, or drops one."""

    nth: int = 0
    drops: bool = False

    def happen(self, stage: Stage) -> None:
        """Do it to one of the branches of files that are on their way."""
        open_ = _in_flight(stage.deployment)
        if not open_:
            return
        ingestion = open_[self.nth % len(open_)]
        if self.drops:
            stage.deployment.others.drop_branch(ingestion.branch)
        else:
            stage.deployment.others.write_on_branch(ingestion.branch, ingestion.tables[0])


@dataclass(frozen=True)
class Decide:
    """A person has a failed file replayed or published anyway, whichever it is, however late.

    Nobody publishes what cannot replace: they would have to delete the older rows first.
    """

    nth: int = 0
    publishes: bool = False

    def happen(self, stage: Stage) -> None:
        """Try it once; it may be refused, or fail on the way."""
        deployment = stage.deployment
        failed = [(i, i.reason) for i in deployment.ledger.all() if i.state in ALERTED]
        open_ = [i for i, why in failed if why and why.code != CANNOT_REPLACE]
        if not open_:
            return
        now = open_[self.nth % len(open_)]
        stage.decided.add(now.id)
        deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            if self.publishes:
                publish_anyway(deployment.adapters, now, "Ann", "it is known")
            else:
                replay(deployment.adapters, now, by="Ann")


@dataclass(frozen=True)
class Strike:
    """At a call of `point`, after `skipped` more of them, a fault; `meanwhile` where it hangs."""

    point: str
    kind: Kind
    skipped: int = 0
    meanwhile: "Story" = ()

    def happen(self, stage: Stage) -> None:
        """Have the fault wait for its call."""
        effect = partial(self._strike, stage)
        fault = Fault(effect, self.kind.when)
        stage.deployment.journal.strike_later(self.point, fault, self.skipped)
        if self.point.endswith(".delete"):  # which needs something to forget
            stage.deployment.bury_garbage()

    def _strike(self, stage: Stage) -> None:
        stage.struck[self.point, self.kind] += 1
        if self.kind.hangs:
            _happen(self.meanwhile, stage)
        else:
            self.kind.value[1]()


Story = Sequence[Event]


def tell(story: Story, stage: Stage | None = None) -> Stage:
    """Let a story happen and come to rest. Raises AssertionError where a promise was broken."""
    stage = stage or Stage()
    try:
        _happen(story, stage)
        for process in stage.processes:
            process.end()
    finally:
        for process in stage.processes:
            process.kill()
    stage.deployment.loses_events = False
    stage.deployment.settle()
    if any(ingestion.branches_to_delete for ingestion in stage.deployment.ledger.all()):
        list(expire(stage.deployment.adapters, 30))  # which finishes what a discard began
        stage.deployment.settle()
    check_promises(stage.deployment)
    _ends_as_it_should(stage)
    _runs_once_an_attempt(stage.deployment)
    assert not stage.replaced, f"merged, and what it replaced is still there: {stage.replaced}"
    _leaves_nothing_behind(stage)
    _went_by_the_contract_in_force(stage)
    return stage


def _happen(story: Story, stage: Stage) -> None:
    for event in story:
        event.happen(stage)


_DECIDED = ("published", "rejected SUPERSEDED", "ignored SUPERSEDED")


def _ends_as_it_should(stage: Stage) -> None:
    """What breaks in between must not change how a file ends."""
    excused = set(stage.excused)
    if stage.deployment.others.dropped:
        excused.add(File.CRASHING.end)
    if max(stage.deployment.drivers.values(), default=0) > 1:  # of one run, only one of them failed
        excused |= {File.CRASHING.end, File.CONTRADICTED.end}
    for id_, file in stage.files.items():
        ingestion = stage.deployment.ledger.get(id_)
        end = f"{ingestion.state} {ingestion.reason.code}" if ingestion.reason else ingestion.state
        may = {file.end, *excused, *(_DECIDED if id_ in stage.decided else ())}
        end = ingestion.state if ingestion.state is State.PUBLISHED else end
        assert end in may, f"{file} must not end {end}: {ingestion}"


def _leaves_nothing_behind(stage: Stage) -> None:
    """No branch is left that nobody needs; of one who hung while others finished, see promises.

    What failed may leave an empty branch, on which it was about to enter its files.
    """
    failed = [i for i in stage.deployment.ledger.all() if i.state in ALERTED]
    tried = tuple(fresh_branch(i.table, i.id, "") for i in failed)
    left = [name for name in left_behind(stage.deployment) if not name.startswith(tried)]
    assert stage.hung or not left, f"left behind: {left}"


def _went_by_the_contract_in_force(stage: Stage) -> None:
    """What was entered on a fresh branch keeps what the contract asked for then, or since."""
    lake, last = stage.deployment.lake, stage.contract_version
    for each in stage.deployment.ledger.all():
        for then in stage.deployment.ledger.history(each.id):
            if then.branch in stage.cut_under and not then.contract_pinned:
                versions = range(stage.cut_under[then.branch], last + 1)
                stored = (lake.contract_at(then.contract_key, f"v{n}") for n in versions)
                right = then.requirements_digest in {
                    contract.contract.requirements_digest for contract in stored
                }
                assert right, f"published by a contract of before: {then}"


def _runs_once_an_attempt(deployment: Deployment) -> None:
    names = Counter(run.name for run in deployment.jobs.runs())
    assert not (twice := names - Counter(set(names))), f"run more than once: {twice}"


def _in_flight(deployment: Deployment) -> list[Ingestion]:
    """Those with a branch of their own that is not merged yet."""
    there = set(deployment.catalog.branches("ingest/"))
    return [i for i in deployment.ledger.all() if i.branch in there and not i.ended]
