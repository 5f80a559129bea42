"""Steps that are left for an ingestion: the sweep resumes it until none is."""

from functions.model.ingestion import ALERTED, ANNOUNCED, UNNEEDED, WITHOUT_REPORT, Ingestion, State


def is_remarkable(one: Ingestion) -> bool:
    """Return whether it was published as a duplicate or with warnings."""
    return one.state is State.PUBLISHED and bool(one.audit.duplicate_of or one.audit.warnings)


def needs_alert(one: Ingestion) -> bool:
    """Return whether its owners must still be alerted to its final state."""
    worth_it = one.state in ALERTED or is_remarkable(one) or one.has_recovered
    return worth_it and not one.alerted


def needs_announcement(one: Ingestion) -> bool:
    """Return whether its final state must still be announced to consumers."""
    return one.state in ANNOUNCED and not one.announced


def needs_cleanup(one: Ingestion) -> bool:
    """Return whether branches that are not needed any more must still be deleted."""
    if one.state in ALERTED:  # fresh branches that a crash may have left
        return "audited" in one.times and not one.cleaned
    return one.state in UNNEEDED and bool(one.branch) and not one.cleaned


def unfinished(one: Ingestion) -> bool:
    """Return whether a step is still due: the sweep resumes these."""
    return not one.ended or needs_alert(one) or needs_announcement(one) or needs_cleanup(one)


def needs_recording(one: Ingestion) -> bool:
    """Return whether its runs' results must still be added to main's tables of results.

    That waits until all else is done: to note it would disturb a process that finishes it.
    """
    return not unfinished(one) and bool(one.table) and one.recorded < one.attempt


def is_silent(one: Ingestion) -> bool:
    """Return whether its last run is over, as far as is known, and left no report."""
    return one.state is State.ERRORED and one.reason_code in WITHOUT_REPORT
