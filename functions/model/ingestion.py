"""One ingestion as the ledger keeps it: a value that each step replaces by the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakegate.batch import BatchFile, tables_of
from lakegate.change import Change
from lakegate.landing import LandedObject, batch_name
from lakegate.report import Reason, Status
from lakegate.text import one_line


class State(StrEnum):
    """How far an ingestion is. The last four are ends."""

    LANDED = "landed"
    BRANCHED = "branched"
    SUBMITTED = "submitted"
    AUDITED = "audited"
    PUBLISHED = "published"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"


IN_FLIGHT = (State.LANDED, State.BRANCHED, State.SUBMITTED, State.AUDITED)
NOT_STARTED = (State.LANDED, State.BRANCHED)
ALERTED = (State.REJECTED, State.ERRORED)
ANNOUNCED = (State.PUBLISHED, *ALERTED)
UNNEEDED = (State.PUBLISHED, State.IGNORED)  # whose branches are
_MOST_ACTIONS = 20
_AGAIN = (State.BRANCHED, State.SUBMITTED, State.AUDITED)


@dataclass(frozen=True)
class Intent:
    """The one thing that may be merged into main for an ingestion: a branch as it is at a hash."""

    branch: str
    hash: str


@dataclass(frozen=True)
class Approval:
    """A person's word that a rejected ingestion is to be published all the same.

    `checks` are the ids of the failed checks that it covers; `at` is when it was given.
    """

    by: str
    reason: str
    at: str
    checks: tuple[str, ...]


@dataclass(frozen=True)
class Action:
    """What a person had done with an attempt: `what` is replay, publish or discard."""

    what: str
    by: str
    at: str
    attempt: int


@dataclass(frozen=True)
class Ingestion:
    """The work that one landed object causes.

    `attempt` counts branches and their job runs, `failures` the runs that failed without a report.
    `revision` counts the ledger's writes and guards each of them. `base_hash` is where on main the
    branch was cut; (`branch`, `audited_hash`) is the intent, changed only by such a guarded write.
    `group` are the ids of all ingestions whose rows the intent holds, this one's included; empty
    where it holds this one's alone. `requirements_digest` is the digest of what the contract asked
    of the rows.
    `merge_hash` is the commit on main. `check_counts` maps a check's status to how many of the
    report's
    ended so; `checks` are the first of those that did not pass, without sample rows: what blocks
    comes before warnings, and these before the rest. `times` maps
    a step to when it was done (ISO 8601, UTC). `alerted`, `announced` and `cleaned` say that the
    people and the readers were told, and the branches were deleted. `recorded` is the last attempt
    whose run's results are in main's tables of results (see recording.py). `saved_at` is when the
    ledger last wrote the ingestion, by the clock of its writer: unlike `times` it is never the time
    of an event, nor of the job's driver. `unknown` is what a newer release wrote of it besides.

    `tries_from` is how many attempts there were before the last replay; `contract_pinned` says
    that the replay is to go by the contract that is named here, whatever is in force. A
    `discarded` ingestion keeps its state; `branches_to_delete` maps its branches that are to be
    deleted, with
    the files that only they reach, to the hashes they stood at, until that is done.

    `on_duplicate` and `on_new_version` are the contract's, as they were when the branch was cut.
    `duplicate_of` is the ingestion that brought the same bytes before. `replaced` are the
    ingestions, of earlier versions of the key, whose rows the intent removes, `replaced_rows` how
    many those are: both belong to the intent and change with it.

    `superseded_by` is the newer version of its key that was published after it had failed: people
    need decide nothing then. `despite` is the newer version that a person named who wants this one
    published all the same.

    `null_unreadable` says that a person wants rows with cells that could not be read on main too.

    `actions` are the last things that people, as far as they gave their names, had done with it.

    `change` is what a person asked for, None where a file landed. Of a change `rows` are those that
    it adds and `replaced_rows` those that it removes.

    `parts` are the files of a batch, pinned when its manifest was taken in: `table` then stands for
    no table (lakegate.landing.BATCH), contracts are the parts', `requirements_digest` are those of
    all of them.

    `checks_whole_table` says that its contract has checks of the whole table. Then `reaudit_base`
    is not
    empty once its files were entered into a fresh branch, on which they are audited again: it is
    where on main they were audited before. `reads_others` says that its job reads other tables than
    its own, as it may have to where an older release did not say.
    """

    id: str
    landed: LandedObject
    state: State = State.LANDED
    revision: int = 0
    attempt: int = 1
    failures: int = 0
    table: str = ""
    checks_whole_table: bool = False
    reads_others: bool = True
    reaudit_base: str = ""
    contract_key: str = ""
    contract_version: str = ""
    requirements_digest: str = ""
    channel: str = ""
    owner: str = ""
    on_duplicate: str = "publish"
    on_new_version: str = "add"
    duplicate_of: str = ""
    branch: str = ""
    base_hash: str = ""
    job_run: str = ""
    report_key: str = ""
    audited_hash: str = ""
    group: tuple[str, ...] = ()
    merge_hash: str = ""
    replaced: tuple[str, ...] = ()
    replaced_rows: int = 0
    rows: int = 0
    reason: Reason | None = None
    check_counts: Mapping[str, int] = field(default_factory=dict)
    checks: tuple[Mapping[str, Any], ...] = ()
    alerted: bool = False
    announced: bool = False
    cleaned: bool = False
    recorded: int = 0
    times: Mapping[str, str] = field(default_factory=dict)
    saved_at: str = field(default="", compare=False)
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False)
    approval: Approval | None = None
    tries_from: int = 0
    contract_pinned: bool = False
    discarded: bool = False
    branches_to_delete: Mapping[str, str] = field(default_factory=dict)
    superseded_by: str = ""
    despite: str = ""
    null_unreadable: bool = False
    actions: tuple[Action, ...] = ()
    change: Change | None = None
    parts: tuple[BatchFile, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that its rows are for; none where that is not known."""
        return tables_of(self.parts) or ((self.table,) if self.table else ())

    @property
    def contracts(self) -> tuple[tuple[str, str], ...]:
        """Key and version of each of its files' contracts: of one, or of a batch's parts."""
        parts = tuple((part.contract_key, part.contract_version) for part in self.parts)
        return parts or ((self.contract_key, self.contract_version),)

    @property
    def intent(self) -> Intent:
        """What may be merged for it; nothing was audited yet where the hash is empty."""
        return Intent(self.branch, self.audited_hash)

    @property
    def replaces(self) -> bool:
        """Whether its rows take the place of those of its key's earlier versions."""
        return self.on_new_version == "replace"

    @property
    def is_reaudit(self) -> bool:
        """Whether it is being audited again, or was, and is still to be published."""
        return bool(self.reaudit_base) and self.state in _AGAIN

    @property
    def is_decided(self) -> bool:
        """Return whether it failed once, and a person has it published beside other versions."""
        return self.state is State.AUDITED and self.has_failed and not self.replaces

    @property
    def is_queued(self) -> bool:
        """Whether another one of its table may have to wait for it (see turns.py)."""
        return self.has_priority or (self.checks_whole_table and self.state is State.AUDITED)

    @property
    def has_priority(self) -> bool:
        """Whether main refused it, and the others of its table leave it the way."""
        whole = self.change is not None or (bool(self.parts) and self.checks_whole_table)
        again = whole and self.is_retried and self.state in _AGAIN
        return self.is_reaudit or again

    @property
    def is_retried(self) -> bool:
        """Whether this is not its first attempt since it landed, or was replayed."""
        return self.attempt - self.tries_from > 1

    @property
    def name(self) -> str:
        """What it is of, in a few words for people: the file's name, or `change of a.b`."""
        if self.change:
            return f"change of {self.change.table}"
        if batch := batch_name(self.landed.key):
            return one_line(f"batch {batch}")
        return one_line(self.landed.key.rsplit("/", 1)[-1] or self.landed.key)

    @property
    def has_rows(self) -> bool:
        """Whether main's rows would be other ones with its intent."""
        return bool(self.rows or (self.change and self.replaced_rows))

    @property
    def has_audited_rows(self) -> bool:
        """Whether its audit came to a verdict on rows that its intent would bring to main."""
        return self.audited_hash not in ("", self.base_hash) and self.has_rows

    @property
    def ended(self) -> bool:
        """Whether the verdict is final."""
        return self.state not in IN_FLIGHT

    @property
    def ended_at(self) -> str:
        """When the verdict became final (ISO 8601, UTC), "" while it is on its way.

        Of what an older release restored nobody noted it: it is then when it last was worked on.
        """
        if not self.ended:
            return ""
        return self.times.get(self.state, max(self.times.values(), default=""))

    @property
    def ready_at(self) -> str:
        """When it could first be published, or a person last allowed it (ISO 8601, UTC)."""
        return max(self.times.get("audited", ""), self.times.get("approved", ""))

    @property
    def has_failed(self) -> bool:
        """Whether it was rejected or errored once, whatever became of it since."""
        return any(state.value in self.times for state in ALERTED)

    @property
    def has_recovered(self) -> bool:
        """Whether it failed once, and nothing is left to be done about that."""
        return self.is_settled and self.has_failed

    @property
    def is_settled(self) -> bool:
        """Return whether nothing is left for people to decide about its end."""
        return self.state in UNNEEDED or self.discarded or bool(self.superseded_by)

    @property
    def is_open(self) -> bool:
        """Return whether it failed and a person is still to decide what becomes of it."""
        return self.state in ALERTED and not self.is_settled

    @property
    def warnings(self) -> tuple[Mapping[str, Any], ...]:
        """The checks that warn people of its rows; one of severity info is only in the report."""
        warns = (check for check in self.checks if check["status"] == Status.WARN)
        return tuple(check for check in warns if check["severity"] != "info")

    @property
    def is_remarkable(self) -> bool:
        """Return whether it was published as a duplicate or with warnings."""
        return self.state is State.PUBLISHED and bool(self.duplicate_of or self.warnings)

    @property
    def needs_alert(self) -> bool:
        """Whether people must still hear of its end."""
        worth_it = self.state in ALERTED or self.is_remarkable or self.has_recovered
        return worth_it and not self.alerted

    @property
    def needs_announcement(self) -> bool:
        """Whether readers must still hear of its end."""
        return self.state in ANNOUNCED and not self.announced

    @property
    def needs_cleanup(self) -> bool:
        """Whether branches that nobody needs any more must still be deleted."""
        if self.state in ALERTED:  # those that a crash left on its way to main
            return "audited" in self.times and not self.cleaned
        return self.state in UNNEEDED and bool(self.branch) and not self.cleaned

    @property
    def unfinished(self) -> bool:
        """Whether a step is still due: the sweep looks for these."""
        return not self.ended or self.needs_alert or self.needs_announcement or self.needs_cleanup

    @property
    def needs_recording(self) -> bool:
        """Whether what its runs left must still be entered into main's tables of results.

        Not before all else is done: to note it would disturb who is just telling of its end.
        """
        return not self.unfinished and bool(self.table) and self.recorded < self.attempt

    def rebased(
        self, at: str, intent: Intent, base_hash: str, group: tuple[str, ...]
    ) -> "Ingestion":
        """This ingestion with another intent, whose branch was cut off main at `base_hash`."""
        return self.step(
            "rebased",
            at,
            branch=intent.branch,
            audited_hash=intent.hash,
            base_hash=base_hash,
            group=group,
        )

    def acted(self, what: str, by: str, at: str) -> "Ingestion":
        """This ingestion once somebody had that done with it; as it is where nobody is named."""
        if not by:
            return self
        done = (*self.actions, Action(what, by, at, self.attempt))
        return self.but(actions=done[-_MOST_ACTIONS:])

    def step(self, name: str, at: str, **changes: Any) -> "Ingestion":
        """This ingestion after the step `name` was done at the time `at`."""
        return self.but(times={**self.times, name: at}, **changes)

    def but(self, **changes: Any) -> "Ingestion":
        """This ingestion with these fields changed, as `replace` has it, which takes far longer."""
        if unknown := changes.keys() - vars(self).keys():
            raise TypeError(f"an ingestion has no {', '.join(sorted(unknown))}")
        changed = object.__new__(Ingestion)
        vars(changed).update(vars(self), **changes)
        return changed


# What has become of an ingestion, in words.


def standing(ingestion: Ingestion) -> str:
    """What has become of an ingestion, for somebody who wanted something else of it."""
    state, times = ingestion.state, ingestion.times
    since = times.get("replayed" if state in IN_FLIGHT else state.value, "")
    words = f"it is {state} now"
    if ingestion.approval:
        words += f", as {ingestion.approval.by} wanted it published ({ingestion.approval.at})"
    elif ingestion.discarded:
        words += f", and was discarded ({times.get('discarded', '')})"
    elif ingestion.superseded_by:
        words += f", and superseded by {ingestion.superseded_by}, a newer version of it"
        words += f" that is published ({times.get('superseded', '')})"
    elif ingestion.tries_from and state in IN_FLIGHT:
        words += f", in attempt {ingestion.attempt}, as it was replayed ({since})"
    return words
