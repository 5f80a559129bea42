"""Keep the order of files that remove rows of others, or look at them: one turn at a time.

    a file landed, and an earlier one of its table is in flight → it is held: no branch, no run
    a file has its final state → the next turn of its table is started, or published (turns.py)
    one comes between the files of a group that waits to be published → the group runs again
    a later one is on main already, and only the order decides between rows → a person decides

The ledger's index may lag behind, and an event may come late: then two files are in flight at once.
The later one still waits for the earlier one before its merge. If it was published nevertheless,
main refuses the earlier one's branch or its log shows the later file, since the log is read after
the branch was created. docs/adr/0046-write-modes.md has the whole argument.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain

from functions.adapters.all import Adapters
from functions.model import queueing
from functions.model.ingestion import Ingestion, State, landing
from functions.model.merge_commit import published, tables
from functions.pipeline.outcome.finish import end, end_if_merged
from functions.telemetry import logger
from lakegate.audit.report import Reason

OUT_OF_ORDER = "OUT_OF_ORDER"
Place = tuple[str, str]
FIRST = ("", "")  # before every file
NEVER = "0"  # before every time
_FEW = 5  # of a queue that are read first
_SKEW = timedelta(minutes=1)  # more than the clocks of S3 and Nessie differ by


def must_be_held(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether it is not to be started yet: an earlier file of its table is in flight."""
    if not (queueing.is_held(ingestion) or (ingestion.takes_turns and ingestion.awaits_shared_run)):
        return False  # one that is queued comes again with the first of its turn only
    # Mostly one of the first is in flight, and then the others need not be read: there may be many.
    table, until = ingestion.table, ingestion.landed.landed_at
    first = adapters.ledger.first_waiting(table, _FEW)
    members = members_of(adapters, ingestion)
    is_held = comes_after(adapters, members, first) or comes_after(
        adapters, members, adapters.ledger.waiting(table, until)
    )
    if is_held:
        logger.info("held: an earlier file of its table is in flight")
    return is_held


def comes_after(
    adapters: Adapters, members: Sequence[Ingestion], listed: Iterable[Ingestion], since: str = ""
) -> bool:
    """Return whether one of those listed comes before the first, or its group, and is in flight.

    `members` are what `members_of` returns.

    One that was started is not waited for if it has not changed since then.
    """
    ingestion = members[0]
    if not ingestion.takes_turns:
        return False
    start = min(map(place, members))
    first = (each for each in listed if place(each) < start)
    return any(_is_waited_for(each, [ingestion], since) for each in _in_flight(adapters, first))


def members_of(adapters: Adapters, ingestion: Ingestion) -> list[Ingestion]:
    """Return the ingestion, and those of its group: they are published together."""
    group = adapters.ledger.together(ingestion.group) if ingestion.group else []
    return [ingestion, *group]


def comes_between(adapters: Adapters, members: Sequence[Ingestion], since: str) -> bool:
    """Return whether another file in flight is between the first and the last of an ordered group.

    It would wait for the first, and the last for it. One that was started is not counted if it has
    not changed since then.
    """
    first, *_, last = sorted(map(place, members))
    until = max(each.landed.landed_at for each in members)
    listed = adapters.ledger.waiting(members[0].table, until)
    between = [each for each in listed if first < place(each) < last]
    return any(_is_waited_for(each, members, since) for each in _in_flight(adapters, between))


def _is_waited_for(each: Ingestion, own: Sequence[Ingestion], since: str) -> bool:
    may_come = queueing.is_held(each) or each.saved_at > since
    return may_come and each.id not in {one.id for one in own}


def is_overtaken(adapters: Adapters, members: Sequence[Ingestion]) -> bool:
    """Return whether a file that landed later than one of a group is on main."""
    first = min(members, key=landing)
    return landing(first) < newest_on_main(adapters, first)


def from_here(adapters: Adapters, first: Ingestion) -> Iterator[Ingestion]:
    """Yield the files in flight that come after one of their table, in order, as last saved.

    Main has not lost that one: what it lost comes first.
    """
    waiting = adapters.ledger.waiting_in_order(first.table, first.landed.landed_at)
    yield from _in_flight(adapters, (each for each in waiting if place(each) > place(first)))


def newest_on_main(adapters: Adapters, ingestion: Ingestion) -> Place:
    """Return the place of the last file on main that was published since the ingestion landed.

    The least place of all without one, or where the order does not decide.
    """
    if not ingestion.terms.follows_landing:
        return FIRST
    return max(map(landing, _since_landing(adapters, ingestion)), default=FIRST)


def next_in_order(adapters: Adapters, done: Ingestion, tried: Collection[str]) -> Ingestion | None:
    """Return the file of the table that is to be published after `done`, if any."""
    lost = [each for each in adapters.ledger.waiting(done.table, NEVER) if each.turn]
    others = (each for each in adapters.ledger.waiting_in_order(done.table) if not each.turn)
    waiting = chain(sorted(lost, key=place), others)
    following = (each for each in _in_flight(adapters, waiting) if each.id not in tried)
    return next(following, None)


def _in_flight(adapters: Adapters, listed: Iterable[Ingestion]) -> Iterator[Ingestion]:
    """Yield those that are in flight, as last saved: the index that listed them lags behind."""
    for each in adapters.ledger.read(each.id for each in listed):
        if each.takes_turns and not each.ended:
            yield each


def place(ingestion: Ingestion) -> tuple[bool, str, str, str]:
    """Return its place in the order: what main lost comes first, in its first order."""
    return not ingestion.turn, ingestion.turn, *landing(ingestion)


def overtaken(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return an audited ingestion as it is then, if a file that landed later came to main before.

    Its older rows would replace newer ones, so it ends rejected, unless a person approved just
    that. Return None if it keeps the order, or is not audited.
    """
    if ingestion.state is not State.AUDITED or not ingestion.terms.follows_landing:
        return None
    if ingestion.is_approved_despite(OUT_OF_ORDER):
        return None
    others = _since_landing(adapters, ingestion)
    later = next((each for each in others if landing(each) > landing(ingestion)), None)
    if later is None:
        return None
    if merged := end_if_merged(adapters, ingestion):
        return merged
    message = (
        f"{later.name} landed later and is on main already, as ingestion {later.id}: this file's "
        "rows may be older than those that they would replace"
    )
    return end(adapters, ingestion, State.REJECTED, Reason(OUT_OF_ORDER, message))


def _since_landing(adapters: Adapters, ingestion: Ingestion) -> Iterator[Ingestion]:
    """Yield the other files of its table on main that were published after it landed.

    Main's log is read back to that time: no later file was published before.
    """
    since = datetime.fromisoformat(ingestion.landed.landed_at) - _SKEW
    for commit in adapters.catalog.log():
        if commit.moment < since:
            return
        named = published(commit) if ingestion.table in tables(commit) else ()
        ids = [each.id for each in named if not each.kind and each.id != ingestion.id]
        yield from adapters.ledger.together(ids)
