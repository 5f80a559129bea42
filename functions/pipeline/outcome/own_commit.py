"""Commit to main what Lakegate adds of its own, by a fresh branch that nobody else names."""

from collections.abc import Callable
from typing import TypeVar

from functions.adapters.all import Adapters
from functions.adapters.nessie import MergeConflict, SetBack
from lakegate.errors import Transient

_MOST_TRIES = 5
_T = TypeVar("_T")


def merge_fresh_branch(
    adapters: Adapters, prefix: str, change: Callable[[str, str], _T], busy: str
) -> _T:
    """Have `change` commit to a fresh branch off main, given its name and base, and merge it.

    Main refuses the merge if another process changed the same tables: then it begins again. Return
    what `change` returns. Raise Transient TABLE_BUSY, with the text `busy`, after several times.
    """
    for _ in range(_MOST_TRIES):
        name = f"{prefix}{adapters.token()}"
        base = adapters.catalog.create_branch(name)
        try:
            return change(name, base)
        except (MergeConflict, SetBack):
            continue
        finally:
            adapters.catalog.delete_branch(name)
    raise Transient("TABLE_BUSY", busy)
