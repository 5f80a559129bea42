"""Guards of compaction and deletion, and of what enters a table whose contract changes."""

from functions.operations.upkeep import recognition
from functions.pipeline.publication import publish
from tests.fakes.guards.guard import Guard, nothing
from tests.fakes.openings import A_QUEUED_FILE_AND_A_KEY
from tests.fakes.sabotage import Patch

UPKEEP = (
    Guard(
        "upkeep deletes nothing where main lacks what it had",
        "has lost",
        (Patch(recognition, "_require_same", nothing),),
    ),
    Guard(
        "a file of an older contract is not appended to rows with keys",
        "are there twice",
        (Patch(publish, "outdated", lambda *_: ""),),
        opening=A_QUEUED_FILE_AND_A_KEY,
    ),
)
