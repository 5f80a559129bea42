"""Guards on the path after a final state: clean up, notify, sweep."""

from collections.abc import Sequence
from typing import Any

from functions import sweep
from functions.adapters.all import Adapters
from functions.model import steps
from functions.model.commits import Tip
from functions.model.ingestion import Ingestion, State
from functions.pipeline.outcome import finish
from tests.fakes.guards.guard import Guard, nothing
from tests.fakes.openings import AN_UNREADABLE_MESSAGE
from tests.fakes.sabotage import Patch


def _note_before(field: str) -> Any:
    """Return a replacement that records its function as done in the ledger, then calls it."""

    def noted(notify: Any, adapters: Adapters, ingestion: Ingestion) -> Any:
        return notify(adapters, adapters.ledger.save(ingestion.step("", "", **{field: True})))

    return noted


def _note_announced_before(announce: Any, adapters: Adapters, ended: Sequence[Ingestion]) -> Any:
    noted = [adapters.ledger.save(each.step("", "", announced=True)) for each in ended]
    announce(adapters, ended)
    return noted


def _delete_then_handle(
    redeliver: Any, adapters: Adapters, queue: Any, work: Any, letter: Any
) -> None:
    queue.delete(letter)
    redeliver(adapters, queue, work, letter)


def _each_but_dead_letters(each: Any, adapters: Adapters, kind: str, things: Any, work: Any) -> Any:
    return each(adapters, kind, () if kind == "dead_letters" else things, work)


def _metadata_of_new_tip(metadata: Any, adapters: Adapters, tip: Tip, tables: Any) -> Any:
    return metadata(adapters, adapters.catalog.tip(), tables)


def _is_duplicate(_: Any, ingestion: Ingestion) -> bool:
    return ingestion.state is State.PUBLISHED and bool(ingestion.audit.duplicate_of)


def _is_unfinished(_: Any, ingestion: Ingestion) -> bool:
    return not ingestion.ended or steps.needs_alert(ingestion) or steps.needs_cleanup(ingestion)


FINISHING = (
    Guard(
        "owners are notified before the ledger says so",
        "nobody was told",
        (Patch(finish, "_send_alert", _note_before("alerted")),),
    ),
    Guard(
        "consumers are notified before the ledger says so",
        "readers were not told",
        (Patch(finish, "_announced", _note_announced_before),),
    ),
    Guard(
        "the sweep finds what consumers were not notified of",
        "readers were not told",
        (Patch(steps, "unfinished", _is_unfinished),),
    ),
    Guard(
        "an announcement names the table's metadata at one commit",
        "readers were told of another table",
        (Patch(finish, "_metadata", _metadata_of_new_tip),),
    ),
    Guard(
        "owners are notified of rows published with warnings",
        "nobody was told",
        (Patch(steps, "is_remarkable", _is_duplicate),),
    ),
    Guard(
        "published branches are deleted",
        "left behind",
        (Patch(finish, "_delete_branches", nothing),),
    ),
    Guard(
        "a newer version closes older failures",
        "not closed by one of",
        (Patch(finish, "_close_older", nothing),),
    ),
    Guard(
        "a failure is closed by a newer version that is published",
        "not closed by one of",
        (Patch(finish, "_closed", lambda _, adapters, failed: failed),),
    ),
    Guard(
        "the sweep finds landed objects without an event",
        "never at rest",
        (Patch(sweep, "forgotten", lambda *_, **__: ()),),
    ),
    Guard(
        "the sweep resumes unfinished ingestions",
        "never at rest",
        (Patch(sweep, "_due", lambda *_: ()),),
    ),
    Guard(
        "the sweep handles dead letters",
        "never at rest",
        (Patch(sweep, "_each", _each_but_dead_letters),),
    ),
    Guard(
        "a dead letter is deleted after it was handled",
        "nobody was told",
        (Patch(sweep, "_redeliver", _delete_then_handle),),
        opening=AN_UNREADABLE_MESSAGE,
    ),
)
