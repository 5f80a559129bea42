"""A decision on a failed version of a key, when a newer version has come since.

It is looked at before each merge, after the branch was cut. A newer version that comes to main
after the look changes the table after the cut, so main refuses the merge and the look is repeated.
docs/adr/0010-versions.md has the whole argument.
"""

from functions.catalog import NotOnMain
from functions.commits import commit_of
from functions.ending import end, end_published
from functions.ingestion import Ingestion, State
from functions.versions import SUPERSEDED, is_on_main, newest_newer
from functions.world import World
from lakegate.report import Reason


def given_way(world: World, ingestion: Ingestion) -> Ingestion | None:
    """Return an audited ingestion as it then is where a newer version keeps it from main.

    Where that one is on its way it waits; where it is on main it ends rejected, with its branch.
    None where nothing keeps it from main.
    """
    newer = newest_newer(world, ingestion)
    if newer is None or newer.id == ingestion.despite:
        return None
    try:
        commit = commit_of(world.catalog.log(), ingestion)
    except NotOnMain:
        return _superseded(world, ingestion, newer) if is_on_main(world, newer) else ingestion
    return end_published(world, [ingestion], commit.hash)  # it was there before the newer one


def _superseded(world: World, ingestion: Ingestion, newer: Ingestion) -> Ingestion:
    message = f"a newer version of it was published meanwhile, as ingestion {newer.id}"
    return end(world, ingestion.but(approval=None), State.REJECTED, Reason(SUPERSEDED, message))
