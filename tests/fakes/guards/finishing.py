"""Guards on what follows a final state: clean up, notify, sweep."""

from typing import Any

from functions import ending, sweeping
from functions.history import Tip
from functions.ingestion import Ingestion, State
from functions.world import World
from tests.fakes.guards.guard import Guard, nothing
from tests.fakes.openings import AN_UNREADABLE_MESSAGE
from tests.fakes.sabotage import Patch


def _note_before(field: str) -> Any:
    """Return a replacement that notes in the ledger that its function is done, then calls it."""

    def noted(notify: Any, world: World, ingestion: Ingestion) -> Any:
        return notify(world, world.ledger.save(ingestion.step("", "", **{field: True})))

    return noted


def _delete_then_handle(redeliver: Any, world: World, queue: Any, work: Any, letter: Any) -> None:
    queue.forget(letter)
    redeliver(world, queue, work, letter)


def _each_but_dead_letters(each: Any, kind: str, things: Any, work: Any) -> Any:
    return each(kind, () if kind == "dead_letters" else things, work)


def _metadata_of_new_tip(metadata: Any, world: World, tip: Tip, tables: Any) -> Any:
    return metadata(world, world.catalog.tip(), tables)


def _is_duplicate(_: Any, ingestion: Ingestion) -> bool:
    return ingestion.state is State.PUBLISHED and bool(ingestion.duplicate_of)


FINISHING = (
    Guard(
        "owners are notified before the ledger says so",
        "nobody was told",
        (Patch(ending, "_tell", _note_before("alerted")),),
    ),
    Guard(
        "consumers are notified before the ledger says so",
        "readers were not told",
        (Patch(ending, "_announce", _note_before("announced")),),
    ),
    Guard(
        "the sweep finds what consumers were not notified of",
        "readers were not told",
        (Patch(Ingestion, "unfinished", lambda _, i: not i.ended or i.untold or i.uncleaned),),
    ),
    Guard(
        "an announcement names the table's metadata at one commit",
        "readers were told of another table",
        (Patch(ending, "_metadata", _metadata_of_new_tip),),
    ),
    Guard(
        "owners are notified of rows published with warnings",
        "nobody was told",
        (Patch(Ingestion, "is_remarkable", _is_duplicate),),
    ),
    Guard(
        "published branches are deleted",
        "left behind",
        (Patch(ending, "_delete_branches", nothing),),
    ),
    Guard(
        "a newer version closes older failures",
        "not closed by one of",
        (Patch(ending, "_close_older", nothing),),
    ),
    Guard(
        "a failure is closed by a newer version that is published",
        "not closed by one of",
        (Patch(ending, "_closed", lambda _, world, failed: failed),),
    ),
    Guard(
        "the sweep finds landed objects without an event",
        "never at rest",
        (Patch(sweeping, "_forgotten", lambda *_: ()),),
    ),
    Guard(
        "the sweep resumes unfinished ingestions",
        "never at rest",
        (Patch(sweeping, "_due", lambda *_: ()),),
    ),
    Guard(
        "the sweep handles dead letters",
        "never at rest",
        (Patch(sweeping, "_each", _each_but_dead_letters),),
    ),
    Guard(
        "a dead letter is deleted after it was handled",
        "nobody was told",
        (Patch(sweeping, "_redeliver", _delete_then_handle),),
        opening=AN_UNREADABLE_MESSAGE,
    ),
)
