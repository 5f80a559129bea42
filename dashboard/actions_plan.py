"""The plan of an action on a failed ingestion: its effect, before it is carried out.

It describes the ingestion as the page shows it. Later changes are found by
functions/operations/decisions/failed.py on confirmation: it alone decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum

from access.ingestions import outcomes
from access.ingestions.shown_report import shown_report
from dashboard.formatting import code
from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, StoredContract, contracts_of
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.merge_commit import rows_of
from functions.notifications import unreadable
from functions.operations.decisions import failed
from functions.operations.decisions.preconditions import (
    require_newest,
    require_original,
    require_publishable,
)
from functions.pipeline.start.contracts import contract_for
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError, Permanent
from lakegate.text import count, visible

_HASH, _MOST_LINES = 12, 12


class Verb(StrEnum):
    """An action that a person may take."""

    REPLAY = "Replay"
    PUBLISH = "Publish anyway"
    DISCARD = "Discard"


@dataclass(frozen=True)
class ActionRequest:
    """A request by a named person: a publication for a `reason`, or a replay by a contract.

    `original` is the contract of the last attempt. With `null_unreadable`, rows with unparseable
    cells are published as well.
    """

    verb: Verb
    by: str = ""
    reason: str = ""
    original: bool = False
    null_unreadable: bool = False


@dataclass(frozen=True)
class Plan:
    """The effect in Markdown sentences.

    `contract_changes` are the lines of a unified diff, from the contract that the file was judged
    by to the one that a replay would use.
    """

    lines: tuple[str, ...]
    contract_changes: tuple[str, ...] = ()


def offered(ingestion: Ingestion) -> tuple[Verb, ...]:
    """Return the actions that its state allows."""
    if ingestion.state not in ALERTED:
        return ()
    whole, newest = not ingestion.decisions.discarded, not ingestion.superseded_by
    judged = ingestion.state is State.REJECTED and ingestion.has_audited_rows
    verbs = {
        Verb.REPLAY: newest,
        Verb.PUBLISH: newest and whole and judged,
        Verb.DISCARD: whole or bool(ingestion.decisions.branches_to_delete),
    }
    return tuple(verb for verb, fits in verbs.items() if fits)


def plan(adapters: Adapters, ingestion: Ingestion, request: ActionRequest) -> Plan:
    """Return the effect of a request. Raises LakegateError for an impossible one."""
    match request.verb:
        case Verb.REPLAY:
            require_newest(adapters, ingestion, "", "replay")
            if request.original:
                require_original(adapters, ingestion)
            return _replay(adapters, ingestion, original=request.original)
        case Verb.PUBLISH:
            _require_publishable(adapters, ingestion)
            report, nulls = shown_report(adapters, ingestion), request.null_unreadable
            return Plan(tuple(_publish(ingestion, report, null_unreadable=nulls)))
        case Verb.DISCARD:
            return _discard(adapters, ingestion)


def carry_out(adapters: Adapters, ingestion: Ingestion, request: ActionRequest) -> tuple[str, ...]:
    """Carry out the request, once; return the outcome in sentences. Raises as `decide` does."""
    done = decide(adapters, ingestion, request)
    match request.verb:
        case Verb.REPLAY:
            words = [outcomes.replayed(done), outcomes.left(done)]
        case Verb.PUBLISH:
            words = [outcomes.approved(done, request.by.strip()), outcomes.left(done)]
        case Verb.DISCARD:
            words = [outcomes.discarded(done)]
    return tuple(filter(None, words))


def decide(adapters: Adapters, ingestion: Ingestion, request: ActionRequest) -> failed.Outcome:
    """Carry out the request, once.

    `ingestion` is as the page showed it: if it changed meanwhile, a LakegateError says how.
    """
    match request.verb:
        case Verb.REPLAY:
            return failed.replay(adapters, ingestion, by=request.by, original=request.original)
        case Verb.PUBLISH:
            nulls = request.null_unreadable
            return failed.publish_anyway(
                adapters, ingestion, request.by, request.reason, null_unreadable=nulls
            )
        case Verb.DISCARD:
            return failed.discard(adapters, ingestion, by=request.by)


def _require_publishable(adapters: Adapters, ingestion: Ingestion) -> None:
    try:
        require_publishable(adapters, ingestion)
    except LakegateError as error:
        if error.code != "NOT_FAILED":  # else somebody was faster, which a yes is answered by
            raise


def _replay(adapters: Adapters, ingestion: Ingestion, *, original: bool) -> Plan:
    judged, gone = _judged_by(adapters, ingestion)
    used = judged if original and not gone else _used(adapters, ingestion, original=original)
    lines = [*_replay_lines(ingestion, used, original=original)]
    if gone:
        lines.append(f"The contract it was judged by cannot be compared: {code(gone)}.")
    return Plan(tuple(lines), contract_changes=tuple(_changes(judged, used)))


def _replay_lines(
    ingestion: Ingestion, used: Sequence[StoredContract], *, original: bool
) -> Iterator[str]:
    what = "The statement" if ingestion.change else code(ingestion.landed.key)
    yield f"{what} is run once more, as attempt {ingestion.attempt + 1}, on a fresh branch."
    which = "the contract of the last attempt" if original else "the contract in force now"
    contracts = (_named(each, ingestion, original=original) for each in used)
    yield f"It goes by {which}: {'; '.join(contracts)}."
    tables = ", ".join(map(code, ingestion.tables))
    yield f"If it passes, its rows go into {tables or 'their table'}; nobody is asked again."
    if ingestion.branch and not ingestion.decisions.discarded:
        yield f"The branch {code(ingestion.branch)} stays until then."


def _judged_by(adapters: Adapters, ingestion: Ingestion) -> tuple[Sequence[StoredContract], str]:
    """Return the contracts of the last attempt, or why they cannot be read."""
    known = sorted({each for each in ingestion.contracts if all(each)})
    try:
        return [adapters.lake.contract_at(*each) for each in known], ""
    except (Missing, Permanent) as error:
        return [], error.message


def _used(adapters: Adapters, ingestion: Ingestion, *, original: bool) -> Sequence[StoredContract]:
    """Return the contracts that a replay uses: of the last attempt, or those in force."""
    if original:
        return [adapters.lake.contract_at(*each) for each in sorted(set(ingestion.contracts))]
    if ingestion.parts:
        in_force = contracts_of(adapters.lake, *ingestion.tables)
        return [each for table, each in in_force.items() if table in ingestion.tables]
    return [contract_for(adapters, ingestion)]


def _named(stored: StoredContract, ingestion: Ingestion, *, original: bool) -> str:
    """Return a contract's name, with a note whether it is a new one."""
    named = f"{code(stored.contract.id)} version {code(stored.contract.version)}"
    same = (stored.key, stored.version) in ingestion.contracts
    return named if original else f"{named}, {'the same as before' if same else 'a new one'}"


def _changes(judged: Sequence[StoredContract], used: Sequence[StoredContract]) -> Iterator[str]:
    """Yield how the contracts of a replay differ from those of the last attempt, as a diff."""
    by_table = {each.contract.table: each for each in used}
    for before in judged:
        now = by_table.get(before.contract.table, before)
        texts = before.text.splitlines(), now.text.splitlines()
        names = f"{before.key} it was judged by", f"{now.key} of the replay"
        yield from map(visible, unified_diff(*texts, *names, n=2, lineterm=""))


def has_unreadable(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return if there are rows with unparseable cells to decide about."""
    return bool(unreadable.named(shown_report(adapters, ingestion)))


def _publish(
    ingestion: Ingestion, report: AuditReport | None, *, null_unreadable: bool
) -> Iterator[str]:
    at = f"{code(ingestion.branch)} at {code(ingestion.audited_hash[:_HASH])}"
    tables = ", ".join(map(code, ingestion.tables))
    yield f"{_rows(ingestion)} {tables} on main, as audited on {at}."
    if report and report.failed:
        yield f"{count(len(report.failed), 'check')} failed, and this overrules them:"
        yield _listed([f"{code(check.id)}: {code(check.found)}" for check in report.failed])
    elif ingestion.reason:
        yield f"It was kept back for this reason: {code(ingestion.reason.message)}"
    if words := unreadable.named(report, null_unreadable=null_unreadable):
        yield code(words)
        if report and failed.must_run_again(report, null_unreadable=null_unreadable):
            yield "For that the job runs once more; what else it finds is not overruled."
    if not report:
        yield "The audit report is gone: which rows break which check cannot be looked up any more."
    if ingestion.terms.checks_whole_table:
        yield "If main has changed since, the checks of the whole table are asked once more."
    yield "Readers of main see it at once, and main's log keeps your name and reason."
    yield f"{_undo(ingestion)} The branch is deleted afterwards."


def _undo(ingestion: Ingestion) -> str:
    replaces = ingestion.change or ingestion.terms.is_ordered or ingestion.replaced
    if replaces or len(ingestion.tables) > 1:
        return f"To undo it: {code('lakegate restore TABLE')} goes back to an earlier state."
    command = f"lakegate retract {ingestion.id} --by NAME --reason TEXT"
    return f"To undo it: {code(command)} removes its rows again."


def _rows(ingestion: Ingestion) -> str:
    added, removed = count(ingestion.audit.rows, "row"), count(ingestion.audit.replaced_rows, "row")
    if ingestion.change:
        return f"{added} are added and {removed} removed: the change goes into"
    if ingestion.terms.is_ordered:
        return f"{rows_of(ingestion)}: the file goes into"
    if ingestion.replaced:
        return f"{added} go into, and {removed} of earlier versions out of,"
    return f"{added} {'goes' if ingestion.audit.rows == 1 else 'go'} into"


def _discard(adapters: Adapters, ingestion: Ingestion) -> Plan:
    known = ingestion.decisions.branches_to_delete
    branches_to_delete = known or failed.own_branches(adapters, ingestion)
    return Plan(tuple(_lost(ingestion, branches_to_delete)))


def _lost(ingestion: Ingestion, branches_to_delete: Mapping[str, str]) -> Iterator[str]:
    if branches_to_delete:
        yield f"{count(len(branches_to_delete), 'branch', 'branches')} will be deleted:"
        yield _listed(
            [f"{code(name)} at {code(at[:_HASH])}" for name, at in branches_to_delete.items()]
        )
    else:
        yield "It has no branch any more: it is only marked as discarded."
    if ingestion.has_rows:
        yield f"Its {count(ingestion.audit.rows, 'row')} cannot be published or looked at any more."
    if not ingestion.change:
        yield f"The landed file stays: a replay reads {code(ingestion.landed.uri)} anew."


def _listed(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_LINES
    shown = [*lines[:_MOST_LINES], *([f"and {more:,} more"] if more > 0 else [])]
    return "\n".join(f"- {line}" for line in shown)
