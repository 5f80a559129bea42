"""Form the turns of a table: files that follow each other, and come to main together.

A turn begins with the first file of the table that is in flight. Files that follow it join as long
as each is held, may share a run, and is to be judged like any other: what a person approved, what
main lost, and what a later file on main has overtaken has a turn of its own. So has every file of a
contract whose files cannot enter together. The run ends a turn where another contract begins.

Files behind one that ends a turn were read for nothing. So a turn is half as long for each attempt
that its first file had before, held again or replayed: where each file ends a turn, soon each has
one of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from functions.adapters.all import Adapters
from functions.adapters.ledger.ledger import fit_together
from functions.model import queueing
from functions.model.ingestion import Ingestion, landing
from functions.pipeline.start.contracts import contract_for
from functions.pipeline.start.landing_order import FIRST, Place, from_here, newest_on_main
from functions.pipeline.start.shared_runs import may_share
from lakegate.contract.sharing import comes_in_turns
from lakegate.errors import LakegateError
from lakegate.job.shared_run import MOST_FILES

_Terms = Callable[[Ingestion], Ingestion]


def turn_of(adapters: Adapters, first: Ingestion, with_terms: _Terms) -> Sequence[Ingestion]:
    """Return the files of the turn that begins with `first`, each with its contract's terms."""
    turn = [first]
    if not (_may_join(first, FIRST) and comes_in_turns(contract_for(adapters, first).contract)):
        return turn
    newest = newest_on_main(adapters, first)
    if not _may_join(first, newest):
        return turn
    most = max(1, MOST_FILES >> first.tries_from)
    turn += islice(_known(adapters, first, newest, with_terms), most - 1)
    while not fit_together(turn):
        turn.pop()
    return turn


def _known(
    adapters: Adapters, first: Ingestion, newest: Place, with_terms: _Terms
) -> Iterator[Ingestion]:
    """Yield the files that may follow in the turn; the first that may not ends it."""
    for each in from_here(adapters, first):
        if each.awaits_shared_run != first.awaits_shared_run or not _may_join(each, newest):
            return
        try:
            known = with_terms(each)
        except LakegateError:
            return  # it says why once it is the first
        if not may_share(known, adapters.settings):
            return
        yield known


def _may_join(ingestion: Ingestion, newest: Place) -> bool:
    """Return whether it may be judged together with others, unless a later file is on main."""
    is_overtaken = ingestion.terms.follows_landing and landing(ingestion) < newest
    waits = queueing.is_held(ingestion) or ingestion.awaits_shared_run
    return waits and not (ingestion.decisions.approval or ingestion.turn or is_overtaken)
