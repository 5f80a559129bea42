"""One ingestion as the ledger keeps it: a frozen value; each step makes the next one of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.decisions import Decisions, Mends
from functions.model.intent import Intent, SharedIntent
from lakegate.audit.report import Reason
from lakegate.job.batch import BatchFile, tables_of
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject, batch_name
from lakegate.text import one_line


class State(StrEnum):
    """The state of an ingestion. The last four are final."""

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
UNNEEDED = (State.PUBLISHED, State.IGNORED)  # their branches can be deleted
# The reasons of final states without a report, which may still come later.
WITHOUT_REPORT = ("NO_REPORT", "JOB_CANCELLED", "JOB_FAILED", "JOB_LOST")
RETRIED = (State.BRANCHED, State.SUBMITTED, State.AUDITED)
SET_BACK = "set back"  # the step by which it is no longer published


@dataclass(frozen=True)
class Ingestion:
    """The work that one landed object, or one change, causes.

    `step` and `but` return the next value; the ledger saves it by a conditional write on
    `revision`, which counts its writes.
    """

    id: str
    landed: LandedObject
    state: State = State.LANDED
    revision: int = 0
    times: Mapping[str, str] = field(default_factory=dict)  # step -> when it was done, in UTC
    saved_at: str = field(default="", compare=False)  # last write, by the writer's clock
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False)  # of a newer release
    shared_intent: SharedIntent = field(default=SharedIntent(), compare=False)  # where it was read

    # What landed, if it is not one file. The files of a batch are pinned to the versions that were
    # there when its manifest landed.
    change: Change | None = None
    parts: tuple[BatchFile, ...] = ()
    mends: Mends | None = None  # of a file that `mend` put

    # As they were when the branch was created.
    terms: ContractTerms = field(default=ContractTerms())

    # The attempt: one branch and its job run. `failures` counts job runs that failed without a
    # report, `tries_from` the attempts before the last replay, and those since that do not count:
    # held again, or without a right. With `is_shared` a shared run takes it from the work queue,
    # and creates its branch; with `leaves_group` none may, until a person decides. With
    # `is_compared` the run also looks at the rows of its table, so earlier such files come to main
    # first.
    attempt: int = 1
    failures: int = 0
    tries_from: int = 0
    is_shared: bool = False
    leaves_group: bool = False
    is_compared: bool = False
    contract_pinned: bool = False  # the replay uses the contract's version that is named above
    job_run: str = ""
    report_key: str = ""
    reaudit_base: str = ""  # in a re-audit: the commit on main at which it was audited before

    # The intent: `branch` at `audited_hash`. It changes by a conditional write only. `base_hash` is
    # the commit on main at which the branch was created. `group` are the ids of all ingestions
    # whose rows the intent holds, if there are several.
    branch: str = ""
    base_hash: str = ""
    audited_hash: str = ""
    group: tuple[str, ...] = ()
    # Part of the intent: ids of earlier versions of the key whose rows it removes.
    replaced: tuple[str, ...] = ()

    audit: AuditOutcome = field(default=AuditOutcome())

    # The final state. `merge_hash` is the commit on main, `superseded_by` the newer version of its
    # key that was published after it had failed.
    reason: Reason | None = None
    merge_hash: str = ""
    superseded_by: str = ""
    alerted: bool = False
    announced: bool = False
    cleaned: bool = False  # its branches are deleted
    recorded: int = 0  # the last attempt whose results are in main's tables (audit_history.py)

    decisions: Decisions = field(default=Decisions())

    @property
    def table(self) -> str:
        """Return where its rows go, "" while no contract is known to claim its key."""
        return self.terms.table

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables that its rows are for, none while they are unknown."""
        return tables_of(self.parts) or ((self.table,) if self.table else ())

    @property
    def contracts(self) -> tuple[tuple[str, str], ...]:
        """Return key and version of each contract of its files."""
        parts = tuple((part.contract_key, part.contract_version) for part in self.parts)
        return parts or (self.terms.contract,)

    @property
    def intent(self) -> Intent:
        """Return what may be merged for it. Its hash is empty before the audit."""
        return Intent(self.branch, self.audited_hash)

    @property
    def awaits_shared_run(self) -> bool:
        """Return whether a shared run has it, or is to take it from the work queue."""
        return self.is_shared and self.state is State.LANDED

    @property
    def takes_turns(self) -> bool:
        """Return whether it comes to main after the earlier files of its table that do so, too."""
        return self.terms.is_ordered or self.is_compared

    @property
    def is_reaudit(self) -> bool:
        """Return whether it is in a re-audit, or passed one and is still to be published."""
        return bool(self.reaudit_base) and self.state in RETRIED

    @property
    def is_decided(self) -> bool:
        """Return whether it failed, and is to be published by decision beside other versions."""
        is_open = self.state is State.AUDITED and self.has_failed
        return is_open and not self.terms.replaces and not self.turn

    @property
    def turn(self) -> str:
        """Return when main published it, if main lost it since and it is to be published again."""
        return "" if self.ended else self.times.get("published", "")

    @property
    def is_retried(self) -> bool:
        """Return whether it had another attempt since it landed or was replayed."""
        return self.attempt - self.tries_from > 1

    @property
    def name(self) -> str:
        """Return the file's name, or a name like `change of a.b` or `batch monday`."""
        if self.change:
            return f"change of {self.change.table}"
        if batch := batch_name(self.landed.key):
            return one_line(f"batch {batch}")
        return one_line(self.landed.key.rsplit("/", 1)[-1] or self.landed.key)

    @property
    def has_rows(self) -> bool:
        """Return whether its intent would change main's rows."""
        removes = self.change is not None or self.terms.is_ordered
        return bool(self.audit.rows or (removes and self.audit.replaced_rows))

    @property
    def has_audited_rows(self) -> bool:
        """Return whether its audit has a verdict on rows that its intent would bring to main."""
        return self.audited_hash not in ("", self.base_hash) and self.has_rows

    @property
    def ended(self) -> bool:
        """Return whether its state is final."""
        return self.state not in IN_FLIGHT

    @property
    def ended_at(self) -> str:
        """Return when its state became final (ISO 8601, UTC), "" while it is in flight.

        Older releases did not note it of what they restored: then it is its last step.
        """
        if not self.ended:
            return ""
        return self.times.get(self.state, max(self.times.values(), default=""))

    @property
    def ready_at(self) -> str:
        """Return when it could first be published, or was last approved (ISO 8601, UTC)."""
        return max(self.times.get("audited", ""), self.times.get("approved", ""))

    @property
    def reason_code(self) -> str:
        """Return the code of the reason for its final state, "" without one."""
        return self.reason.code if self.reason else ""

    @property
    def reason_text(self) -> str:
        """Return the sentence of the reason for its final state, "" without one."""
        return self.reason.message if self.reason else ""

    def by_whom(self, step: str) -> str:
        """Return ` by NAME` of who asked for a step that was done, "" if nobody gave a name."""
        at = self.times.get(step)
        return next((f" by {each.by}" for each in self.decisions.actions if each.at == at), "")

    def is_approved_despite(self, code: str) -> bool:
        """Return whether a person approved its publishing, which was refused for this reason."""
        return self.decisions.approval is not None and self.reason_code == code

    @property
    def has_failed(self) -> bool:
        """Return whether it was ever rejected or errored."""
        return any(state.value in self.times for state in ALERTED)

    @property
    def has_recovered(self) -> bool:
        """Return whether it failed once, and that is settled."""
        return self.is_settled and self.has_failed

    @property
    def is_settled(self) -> bool:
        """Return whether nothing is left to decide about it."""
        return self.state in UNNEEDED or self.decisions.discarded or bool(self.superseded_by)

    @property
    def is_open(self) -> bool:
        """Return whether it failed and waits for a decision."""
        return self.state in ALERTED and not self.is_settled

    def rebased(
        self, at: str, intent: Intent, base_hash: str, group: tuple[str, ...]
    ) -> "Ingestion":
        """Return it with another intent, whose branch was created off main at `base_hash`."""
        return self.step(
            "rebased",
            at,
            branch=intent.branch,
            audited_hash=intent.hash,
            base_hash=base_hash,
            group=group,
        )

    def without_approval(self) -> "Ingestion":
        """Return it as not approved, which a new verdict or a newer version calls for."""
        return self.but(decisions=replace(self.decisions, approval=None))

    def step(self, name: str, at: str, **changes: Any) -> "Ingestion":
        """Return it after the step `name`, done at the time `at`."""
        return self.but(times={**self.times, name: at}, **changes)

    def but(self, **changes: Any) -> "Ingestion":
        """Return it with these fields changed, far faster than `dataclasses.replace` does."""
        if unknown := changes.keys() - vars(self).keys():
            raise TypeError(f"an ingestion has no {', '.join(sorted(unknown))}")
        changed = object.__new__(Ingestion)
        vars(changed).update(vars(self), **changes)
        return changed


def landing(ingestion: Ingestion) -> tuple[str, str]:
    """Return its place in the order of landing; of one moment the ids decide."""
    return ingestion.landed.landed_at, ingestion.id
