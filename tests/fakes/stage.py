"""A deployment in which a story happens, and the facts that its end is judged by."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from access.files.backfill import Backfill
from lakegate.job.landing import branch_name
from tests.fakes import job
from tests.fakes.backups import Backup
from tests.fakes.deployment import OTHER_TABLE, RETURNS, TABLE, Deployment
from tests.fakes.faults import Fault, When, die, unavailable
from tests.fakes.job import Script
from tests.fakes.processes import Process, pause

A_DAY = (24 * 60 + 1) * 60.0  # from one run of the daily function to the next, a minute late


class File(Enum):
    """A landed file: the script of its job run, and its final state."""

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
        """Return the script of its job run."""
        return self.value[0]

    @property
    def end(self) -> str:
        """Return its final state, with the code of the reason."""
        return self.value[1]

    def key(self, key: str) -> str:
        """Return the key that it lands under, near the given one."""
        folder, _, name = key.rpartition("/")
        return {File.UNCLAIMED: f"elsewhere/{name}", File.MARKER: f"{folder}/_{name}"}.get(
            self, key
        )


class Kind(Enum):
    """The time of a fault at a call, and its effect; other processes continue while one hangs."""

    UNAVAILABLE = ("before", unavailable)
    DONE_YET_UNAVAILABLE = ("after", unavailable)
    DIES_BEFORE = ("before", die)
    DIES_AFTER = ("after", die)
    HANGS_BEFORE = ("before", None)
    HANGS_AFTER = ("after", None)

    @property
    def when(self) -> When:
        """Return "before" or "after" the call."""
        return "before" if self.value[0] == "before" else "after"

    @property
    def effect(self) -> Callable[[], object] | None:
        """Return the effect, or None if the call hangs."""
        return self.value[1]


class Event(Protocol):
    """An event of a story."""

    def happen(self, stage: "Stage") -> None:
        """Apply the event."""


Story = Sequence[Event]


def happen(story: Story, stage: "Stage") -> None:
    """Apply all events of a story in their order."""
    for event in story:
        event.happen(stage)


@dataclass
class Stage:
    """The deployment of a story, and the facts that a test needs to judge its end.

    `files` are the landed ones by their ingestion's id. `struck` counts the faults that struck.
    `excused` are the final states that owners' decisions also allow for a file. `decided` are the
    ids of ingestions that a command decided. `replaced` are branches that still existed when their
    successor was merged. `forgotten` counts the ledger items and job runs that were lost.
    `cut_under` maps each fresh branch to the contract version in force when it was created.
    `backup` is the backup of the catalog that can be restored. `had_orphans` says in the end if a
    job had left data files that it never committed. `aimed` counts the steps that processes were
    brought to. `sources` counts the files that were put into another bucket, and `backfills` are
    the commands that were given to bring them. `asked` maps the keys of takeovers that a command
    requested to their ids.
    """

    deployment: Deployment = field(default_factory=Deployment)
    files: dict[str, File] = field(default_factory=dict)
    struck: Counter[tuple[str, Kind]] = field(default_factory=Counter)

    excused: set[str] = field(default_factory=set)
    replaces_versions: bool = False
    replaces_rows: bool = False
    restores: bool = False
    has_batches: bool = False
    lost_entries: bool = False
    lost_batches: bool = False
    refuses_batches: bool = False
    decided: set[str] = field(default_factory=set)
    forgotten: int = 0
    checks_whole_table: bool = False
    replaced: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    cut_under: dict[str, int] = field(default_factory=dict)
    backup: Backup | None = None
    had_orphans: bool = False
    aimed: Counter[str] = field(default_factory=Counter)
    sources: int = 0
    asked: dict[str, str] = field(default_factory=dict)
    backfills: dict[Backfill, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Add a contract for a second table, and watch each merge and each new branch."""
        self.deployment.journal.pause = pause
        self.deployment.catalog.store = self.deployment.lake.store
        self.deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
        self.deployment.journal.strike("catalog.merge", Fault(self._watch, times=float("inf")))
        cut = Fault(self._note_contract, "after", times=float("inf"))
        self.deployment.journal.strike("catalog.create_branch", cut)

    def _watch(self) -> None:
        """Note the branches that a merge replaces and that are not deleted before it.

        Those that somebody forged were never an ingestion's.
        """
        if not self.struck and not self.processes:
            forged = self.deployment.others.forged
            there = set(self.deployment.catalog.branches("ingest/")) - forged
            moved = [i for i in self.deployment.ledger.all() if i.branch.startswith("publish/")]
            own = (
                branch_name(i.table, i.landed.key, i.id, i.attempt) for i in moved if not i.ended
            )
            self.replaced += there & set(own)

    def _note_contract(self) -> None:
        """Record the contract version in force when a fresh branch was created."""
        for name in self.deployment.catalog.branches(f"publish/{TABLE}/"):
            self.cut_under.setdefault(name, self.contract_version)

    @property
    def contract_version(self) -> int:
        """Return how often the contract of shop.orders was uploaded."""
        stored = {each.contract.table: each for each in self.deployment.lake.contracts()}
        return int(stored[TABLE].version.removeprefix("v"))

    @property
    def hung(self) -> bool:
        """Return whether a process hung while others continued."""
        return bool(self.processes) or any(kind.effect is None for _, kind in self.struck)

    def pass_day(self, share: float = 1) -> None:
        """Let a day pass, or a share of it; EMR ends the job runs that are up."""
        for process in self.under_way:
            if process.call.startswith("job_"):
                process.kill()
        self.deployment.clock.pass_(A_DAY * share)

    @property
    def under_way(self) -> list[Process]:
        """Return the processes that are stopped before one of their calls."""
        return [process for process in self.processes if not process.ended]
