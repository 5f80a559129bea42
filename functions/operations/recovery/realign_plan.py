"""Decide how ledger and main agree again after the catalog was restored to an older backup.

Everything here is a pure function of main's log, the ledger, the branches and what landed;
realign.py reads these and carries the decisions out. Each decision is one conditional write to one
ingestion, so it can be repeated, and it is no longer made once it is carried out.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from functions.model import merge_commit, steps
from functions.model.commits import Commit
from functions.model.ingestion import ALERTED, UNNEEDED, Ingestion, State
from functions.model.merge_commit import Published
from functions.pipeline.outcome.audit_history import RUNS
from functions.pipeline.outcome.versions import SUPERSEDED, is_newer
from lakegate.audit.audit_tables import RESULTS
from lakegate.job.landing import ID_PART, id_part, ingestion_id


class Kind(StrEnum):
    """A difference between ledger and main, by what is done about it."""

    PUBLISH_AGAIN = "publish again"
    RUN_AGAIN = "run again"
    LOST = "lost"
    UNCLEAR = "unclear"
    ADOPT = "adopt"
    REOPEN = "reopen"
    RECORD_AGAIN = "record again"
    DELETE_BRANCHES = "delete branches"
    BRANCH_GONE = "branch gone"


@dataclass(frozen=True)
class Decision:
    """What to do about one ingestion; `why` explains LOST and UNCLEAR.

    `branches` are the branches to delete, `commit` is the commit on main of ADOPT.
    """

    ingestion: Ingestion
    kinds: tuple[Kind, ...]
    why: str = ""
    branches: tuple[str, ...] = ()
    commit: tuple[Commit, Published] | None = None


class MainLog:
    """What main's log names; of each ingestion only numbers are kept."""

    def __init__(self) -> None:
        """Begin with an empty log."""
        self.head = ""
        self._named: set[int] = set()
        self._by: set[int] = set()
        self._runs: dict[int, bool] = {}

    def read(self, log: Iterable[Commit]) -> None:
        """Add the commits of a log, newest first, back to the head that was read before.

        Raises Permanent HISTORY_CUT for a log without its beginning.
        """
        head, runs = "", dict[int, bool]()
        for commit in merge_commit.whole(log):
            head = head or commit.hash
            if commit.hash == self.head:
                break
            for each in merge_commit.published(commit):
                self._named.add(hash(each.id))
                self._by.add(hash((each.id, commit.hash)))
            for run, published in json.loads(commit.properties.get(RUNS, "{}")).items():
                runs.setdefault(hash(run), published)
        self.head = head
        self._runs |= runs

    def names(self, id_: str) -> bool:
        """Return whether a commit published the ingestion."""
        return hash(id_) in self._named

    def agrees(self, ingestion: Ingestion) -> bool:
        """Return whether main published it exactly if the ledger says so, by the same commit."""
        if ingestion.state is State.PUBLISHED:
            return hash((ingestion.id, ingestion.merge_hash)) in self._by
        return not (ingestion.ended and self.names(ingestion.id))

    def has_recorded(self, run: str, *, published: bool = False) -> bool:
        """Return whether main's audit tables have the results of a run, as `published` if it is."""
        recorded = self._runs.get(hash(run))
        return recorded is not None and (recorded or not published)


class Branches:
    """The existing branches, by the ingestions that they were created for."""

    def __init__(self, names: Iterable[str]) -> None:
        """Sort these names by the ingestions in them; a group's branch names none."""
        self._all = frozenset(names)
        self._own: defaultdict[str, set[str]] = defaultdict(set)
        for name in self._all:
            if part := _id_part(name):
                self._own[part].add(name)

    def own(self, ingestion: Ingestion) -> set[str]:
        """Return the branches that were created for an ingestion, or for a group with it."""
        return self._own.get(ingestion.id[:ID_PART], set()) | self.group_branches(ingestion)

    def group_branches(self, ingestion: Ingestion) -> set[str]:
        """Return the group's branch that holds its rows, if there is one."""
        return set() if _id_part(ingestion.branch) else {ingestion.branch} & self._all

    def __contains__(self, name: str) -> bool:
        """Return whether there is a branch of this name."""
        return name in self._all


def _id_part(branch: str) -> str:
    """Return the part of an ingestion's id in the name of its branch, "" without one."""
    return "" if branch.startswith(f"publish/{RESULTS.name}/") else id_part(branch)


@dataclass(frozen=True)
class Facts:
    """What is known besides the ledger.

    `branches` are the existing ones, `needed` those that open ingestions name. `landed` are the ids
    of landed objects that still exist. `unclear` maps ids to the reason why main may have their
    rows although no commit names them. `unrecorded` are the ids of those with results that main's
    audit tables lack. `commits` published the ingestions on which ledger and main disagree.
    """

    main: MainLog
    branches: Branches
    needed: Collection[str] = ()
    landed: Collection[str] = ()
    unclear: Mapping[str, str] = field(default_factory=dict)
    unrecorded: Collection[str] = ()
    commits: Mapping[str, tuple[Commit, Published]] = field(default_factory=dict)


def is_lost(ingestion: Ingestion, main: MainLog) -> bool:
    """Return whether main lost the commit that published it."""
    return ingestion.state is State.PUBLISHED and not main.names(ingestion.id)


def may_differ(ingestion: Ingestion, main: MainLog, branches: Branches) -> bool:
    """Return whether there may be a decision on it, apart from its results in main's tables."""
    if not main.agrees(ingestion) or _was_superseded(ingestion):
        return True
    if ingestion.ended and not ingestion.is_open:
        return bool(branches.own(ingestion))
    return bool(ingestion.branch) and ingestion.branch not in branches


def files_needed(ingestion: Ingestion) -> set[str]:
    """Return the ids of the landed objects that a new run of it reads."""
    parts = (part.landed(ingestion.landed) for part in ingestion.parts)
    return {ingestion.id, *map(ingestion_id, parts)}


def decide(ingestions: Sequence[Ingestion], facts: Facts) -> list[Decision]:
    """Return the decisions, in the order in which they are to be carried out.

    What main lost comes first, in the order in which it was published.
    """
    lost = {
        each.id: each
        for each in ingestions
        if is_lost(each, facts.main) and each.id not in facts.unclear
    }
    versions: defaultdict[tuple[str, str], list[Ingestion]] = defaultdict(list)
    for each in lost.values():
        versions[_key(each)].append(each)
    decisions = []
    for each in ingestions:
        if each.id in lost or each.id in facts.unclear:
            decisions.append(_lost_decision(each, facts))
        elif _must_run_again(each, facts, versions.get(_key(each), ())):
            decisions.append(Decision(each, (Kind.RUN_AGAIN,)))
        else:
            decisions.append(_other_decision(each, facts, lost))
    return sorted((each for each in decisions if each.kinds), key=_order)


def _lost_decision(ingestion: Ingestion, facts: Facts) -> Decision:
    if why := facts.unclear.get(ingestion.id, ""):
        return Decision(ingestion, (Kind.UNCLEAR,), why)
    if files_needed(ingestion).issubset(facts.landed):
        shared = facts.branches.group_branches(ingestion).difference(facts.needed)
        return Decision(ingestion, (Kind.PUBLISH_AGAIN,), branches=tuple(shared))
    message = (
        f"main lost commit {ingestion.merge_hash}, which published its {ingestion.audit.rows:,} "
        "rows, when the catalog was restored, and its landed object is gone: upload the file "
        f"again; {ingestion.report_key} in the lake bucket names the data files that have its rows"
    )
    return Decision(ingestion, (Kind.LOST,), message)


def _must_run_again(ingestion: Ingestion, facts: Facts, lost: Sequence[Ingestion]) -> bool:
    """Return whether its branch is gone, or it was ignored since a lost version was newer."""
    if not ingestion.ended:
        is_gone = ingestion.branch and ingestion.branch not in facts.branches
        return bool(is_gone) and not facts.main.names(ingestion.id)
    is_ignored = ingestion.state is State.IGNORED and _was_superseded(ingestion)
    return is_ignored and any(is_newer(each, ingestion) for each in lost)


def _other_decision(ingestion: Ingestion, facts: Facts, lost: Collection[str]) -> Decision:
    commit, stale = facts.commits.get(ingestion.id), _stale(ingestion, facts)
    is_adopted = bool(commit) and not facts.main.agrees(ingestion)
    is_open_again = ingestion.state in ALERTED and ingestion.superseded_by in lost
    has_lost_results = ingestion.id in facts.unrecorded and not steps.needs_recording(ingestion)
    is_branch_gone = bool(ingestion.branch) and ingestion.branch not in facts.branches
    kinds = {
        Kind.ADOPT: is_adopted,
        Kind.REOPEN: is_open_again and not is_adopted,
        Kind.RECORD_AGAIN: has_lost_results,
        Kind.DELETE_BRANCHES: bool(stale),
        Kind.BRANCH_GONE: ingestion.is_open and is_branch_gone,
    }
    due = tuple(kind for kind, holds in kinds.items() if holds)
    return Decision(ingestion, due, branches=stale, commit=commit)


def _stale(ingestion: Ingestion, facts: Facts) -> tuple[str, ...]:
    """Return the branches that the ledger knows to be deleted, and that are there all the same."""
    is_done = ingestion.state in UNNEEDED and not steps.needs_cleanup(ingestion)
    decisions = ingestion.decisions
    is_removed = decisions.discarded and not decisions.branches_to_delete
    if not (is_done or is_removed) or not facts.main.agrees(ingestion):
        return ()
    return tuple(sorted(facts.branches.own(ingestion).difference(facts.needed)))


def _was_superseded(ingestion: Ingestion) -> bool:
    is_ignored = ingestion.state is State.IGNORED and ingestion.reason_code == SUPERSEDED
    return bool(ingestion.superseded_by) or is_ignored


def _key(ingestion: Ingestion) -> tuple[str, str]:
    return ingestion.landed.uri, ingestion.table


def _order(decision: Decision) -> tuple[bool, str, str]:
    ingestion = decision.ingestion
    at = ingestion.times.get("published", "")
    return ingestion.state is not State.PUBLISHED, at, ingestion.id
