"""Tell whether the catalog is the one that upkeep saw last, and lacks nothing that it had then.

A catalog that is empty, another one, restored from a backup, or whose main was set back, does not
reach files that are needed. So main must still have the commit that was its head at the last look,
and every commit that the ledger calls published since. Of other commits since then, those of other
writers and of compactions, nobody could tell if main had lost them. So the last look must not lie
before the oldest states that are kept: else files that only such commits reach would be due.

A person may accept main as it is: then what upkeep sees is noted, as at its first look, and nothing
is deleted until the next one.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.model.notes.upkeep_note import Look
from functions.operations.upkeep.ledger_claims import Claims, read_claims
from lakegate import times
from lakegate.errors import Transient
from lakegate.times import moment


class InDoubt(Transient):
    """Upkeep cannot tell which files nobody needs, so it deletes none."""


def recognise(
    adapters: Adapters, last: Look, now: datetime, oldest: datetime, accepted: str = ""
) -> tuple[Look, Claims]:
    """Return a look at the catalog, and what the ledger claimed before.

    Raises InDoubt if it lacks what it had at the last look. States before `oldest` are not kept. A
    person may have `accepted` a commit of main, which then has to be there instead of all others.
    """
    catalog, claims = adapters.catalog, read_claims(adapters, last, oldest)
    if not catalog.begun():
        raise InDoubt("EMPTY_CATALOG", f"main has no commit: {_RESTORE}")
    look = Look(times.text(now), catalog.identity(), catalog.head(MAIN), bool(accepted))
    if not accepted:
        _require_same(adapters, last, look, claims.published)
        _require_recent(last, look, oldest)
    elif _lacking(adapters, [accepted]):
        raise InDoubt("NOT_ON_MAIN", f"main has no commit {accepted}; its head is {look.head}")
    return look, claims


def _require_same(adapters: Adapters, last: Look, now: Look, published: Mapping[str, str]) -> None:
    advice = _advice(now)
    if last.at and last.catalog != now.catalog:
        born = f"it was created on {moment(now.catalog)}, that one on {moment(last.catalog)}"
        had = f"Nessie is another one than on {moment(last.at)} ({born})"
        raise InDoubt("OTHER_CATALOG", f"{had}: {advice}")
    lacking = _lacking(adapters, [*filter(None, [last.head]), *published])
    if last.head in lacking:
        had = f"main lacks commit {last.head}, which was its head on {moment(last.at)}"
        raise InDoubt("MAIN_SET_BACK", f"{had}: {advice}")
    if lacking:
        first = min(lacking)
        had = f"main lacks {len(lacking):,} of the commits that the ledger calls published"
        some = f"for example {first} of {published[first]}"
        raise InDoubt("MAIN_LACKS_COMMITS", f"{had}, {some}: {advice}")


def _require_recent(last: Look, now: Look, oldest: datetime) -> None:
    if last.at and datetime.fromisoformat(last.at) < oldest:
        had = f"upkeep was last sure of main on {moment(last.at)}, more than KeepDays ago"
        why = "it cannot tell whether main was set back since then"
        raise InDoubt("LONG_UNSEEN", f"{had}, so {why}: {_advice(now)}")


def _advice(now: Look) -> str:
    return f"{_RESTORE}. If main is right as it is: `lakegate upkeep --accept-main {now.head}`"


_RESTORE = (
    "nothing was deleted. If it was set back, or Nessie lost its data, set it forward again or "
    "restore Nessie, and realign the ledger"
)


def _lacking(adapters: Adapters, commits: Iterable[str]) -> set[str]:
    """Return those of the commits that main's log does not have."""
    left = set(commits)
    for commit in adapters.catalog.log():
        left.discard(commit.hash)
        if not left:
            break
    return left
