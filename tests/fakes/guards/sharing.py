"""Guards on the way through shared runs: queue, take, judge."""

from functions import sweep
from functions.pipeline.start import submit
from functions.pipeline.start.shared_runs import Queued
from functions.pipeline.verdict import judged
from functions.pipeline.verdict.judged import GroupVerdict
from tests.fakes.guards.guard import Guard, nothing
from tests.fakes.sabotage import Patch

SHARING = (
    Guard(
        "a group is published only if all its reports name its branch",
        "doubled|unaudited|must not end|lost|FOREIGN",
        (Patch(GroupVerdict, "_is_named", lambda _, group, member, report: bool(report)),),
    ),
    Guard(
        "a shared run's verdict is on one attempt",
        "doubled|must not end|never at rest|evidence",
        (Patch(judged, "_awaits", lambda _, ingestion, attempt: not ingestion.ended),),
    ),
    Guard(
        "a file that leaves the work queue begins another attempt",
        "must not end",
        (Patch(submit, "_left_alone", lambda _, known: known),),
    ),
    Guard(
        "what the ledger lost is not queued again",
        "doubled|must not end|main's log names|never at rest",
        (Patch(submit, "_require_new", nothing),),
    ),
    Guard(
        "the sweep queues a file again whose message was lost",
        "never at rest",
        (Patch(Queued, "lost", lambda _, queued: ()),),
    ),
    Guard(
        "the sweep starts a shared run that is missing",
        "never at rest",
        (Patch(sweep, "slots_needed", lambda _, adapters: iter(())),),
    ),
)
