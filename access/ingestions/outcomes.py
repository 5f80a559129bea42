"""Describe states and results of ingestions, and of actions on failed ones. Pure."""

from typing import TYPE_CHECKING

from functions.model import queueing
from functions.model.ingestion import ALERTED, NOT_STARTED, UNNEEDED, Ingestion, State
from functions.model.merge_commit import rows_of
from functions.model.shown_state import state_words

if TYPE_CHECKING:  # a second to import, which most commands do not need
    from functions.operations.decisions.failed import Outcome

_RUNNING = {
    State.LANDED: "job rerunning",
    State.BRANCHED: "job rerunning",
    State.SUBMITTED: "job rerunning",
    State.AUDITED: "publishing",
}
# The steps that begin another attempt; whoever approves a file may have it run again.
_AGAIN = ("replayed", "approved", "held again", "run again")


def state(ingestion: Ingestion) -> str:
    """Return its state as people see it, with a note while it waits for a shared run."""
    held = " (behind earlier files of its table)" if queueing.is_held(ingestion) else ""
    return f"{state_words(ingestion)}{' (queued)' if ingestion.awaits_shared_run else held}"


def files_waiting(files: int) -> str:
    """Describe how many files wait for shared runs, those in work included; "" for none.

    SQS knows the number only roughly, and later files count as well: `files_before` has the place.
    """
    words = "file waits or is" if files == 1 else "files wait or are"
    return f"about {files:,} {words} in work" if files else ""


def waits(ingestion: Ingestion, why: str) -> str:
    """Describe the state of an ingestion that waits for a job run, and why, "" if that is left."""
    what = "waits for a shared run" if ingestion.awaits_shared_run else "waits for a job run"
    return f"{what}; {why}" if why else what


def files_before(files: int) -> str:
    """Describe how many unfinished files landed earlier than one that waits."""
    return f"{files:,} {'file' if files == 1 else 'files'} before it" if files else "next in line"


def why_again(ingestion: Ingestion) -> str:
    """Describe why it has another attempt than the first, "" for the first one."""
    if ingestion.attempt == 1:
        return ""
    last = max(_AGAIN, key=lambda step: ingestion.times.get(step, ""))
    if last == "held again":
        return "it waited for files that landed before it"
    if not ingestion.is_retried and last != "run again":
        return _requested(ingestion, last)
    if ingestion.failures:
        return "the run before did not finish it"
    if ingestion.leaves_group:
        return "another file keeps it from main, but not those that it ran with"
    return "main or its contract changed, or a right was missing"


def _requested(ingestion: Ingestion, step: str) -> str:
    """Describe who asked for its attempt; an approval of rows on a branch began none."""
    approved = [a for a in ingestion.decisions.actions if a.at == ingestion.times.get("approved")]
    if step == "approved" and any(each.attempt < ingestion.attempt for each in approved):
        return f"publish requested{ingestion.by_whom('approved')}"
    return f"replay requested{ingestion.by_whom('replayed')}"


def attempt(ingestion: Ingestion) -> str:
    """Return the number of its attempt with the reason for it: `2 (replay requested by Ann)`."""
    why = why_again(ingestion)
    return f"{ingestion.attempt} ({why})" if why else str(ingestion.attempt)


def published_together(ingestion: Ingestion) -> str:
    """Describe the files that were published by the same merge, "" for none."""
    many = len(ingestion.group) - 1
    if many < 1 or ingestion.state is not State.PUBLISHED:
        return ""
    return f"with {many:,} other {'file' if many == 1 else 'files'}"


def branch(ingestion: Ingestion) -> str:
    """Return its branch, with a note if it is gone; a failed one's is evidence until a discard."""
    gone = " (discarded)" if ingestion.decisions.discarded else ""
    if ingestion.cleaned and ingestion.state in UNNEEDED:
        why = "after its merge" if ingestion.merge_hash else "as nobody needs it"
        gone = f" (deleted {why})"
    return f"{ingestion.branch}{gone}" if ingestion.branch else ""


def job_run(ingestion: Ingestion) -> str:
    """Return the job run of its last attempt, with a note if other files may share it."""
    shared = " (shared)" if ingestion.is_shared else ""
    return f"{ingestion.job_run}{shared}" if ingestion.job_run else ""


def replayed(outcome: "Outcome") -> str:
    """Describe a replay, which may wait for a job run, or end where none can be started."""
    now = outcome.ingestion
    if now.ended:
        why = f": {now.reason.message}" if now.reason else ""
        return f"attempt {now.attempt} of {now.name} is {now.state}{why}"
    what = "requested" if now.state in NOT_STARTED else "started"
    return f"{what} attempt {now.attempt} of {now.name}"


def approved(outcome: "Outcome", by: str) -> str:
    """Describe the result of an approval by `by`."""
    now = outcome.ingestion
    if now.state is not State.PUBLISHED:
        why = f": {now.reason.message}" if now.reason and now.state in ALERTED else ""
        return f"{now.name}: approved by {by}; {_RUNNING.get(now.state, now.state)}{why}"
    if now.change or now.terms.is_ordered:
        name = f"the {now.name}" if now.change else now.name
        return f"published {name}, {rows_of(now)}, as {now.merge_hash}"
    return f"published {rows_of(now)} of {now.name} as {now.merge_hash}"


def discarded(outcome: "Outcome") -> str:
    """Return what was deleted, or what could not be deleted."""
    name = outcome.ingestion.name
    if outcome.left:
        return f"{name} is discarded, but not deleted completely: {outcome.left}"
    return f"discarded {name}: its branches are deleted; upkeep deletes their files"


def left(outcome: "Outcome") -> str:
    """Describe the unfinished work of a replay or an approval, "" for none."""
    if not outcome.left:
        return ""
    is_published = outcome.ingestion.state is State.PUBLISHED
    done = (
        "published, but its branch is not deleted yet"
        if is_published
        else "recorded, but not finished"
    )
    return f"{done}: {outcome.left}"
