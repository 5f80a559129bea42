"""Find an ingestion by its id, or by the first characters of it."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lakegate.errors import LakegateError
from lakegate.job.landing import ID_PART

if TYPE_CHECKING:
    from functions.adapters.ledger.ledger import Ledger
    from functions.model.ingestion import Ingestion


_ID_LENGTH = 32
_ID = re.compile(f"[0-9a-f]{{{_ID_LENGTH}}}")


def is_whole(which: str) -> bool:
    """Return whether a text is a whole id, so that it needs no ledger to be one."""
    return bool(_ID.fullmatch(which))


def identified(ledger: "Ledger", beginning: str) -> "Ingestion":
    """Return the one ingestion whose id starts with `beginning`.

    Raises LakegateError UNKNOWN_INGESTION if there is none, AMBIGUOUS_ID if there are several.
    """
    return each_identified(ledger, [beginning])[0]


def each_identified(ledger: "Ledger", beginnings: Sequence[str]) -> "list[Ingestion]":
    """Return the same for each; the ledger is read once for all that are no whole ids."""
    cut = tuple(filter(None, (_id(each) for each in beginnings if not is_whole(_id(each)))))
    every = [each for each in ledger.all() if each.id.startswith(cut)] if cut else []
    return [_one(ledger, each, every) for each in beginnings]


def _id(beginning: str) -> str:
    return beginning.strip().lower()


def _one(ledger: "Ledger", beginning: str, every: "Iterable[Ingestion]") -> "Ingestion":
    wanted = _id(beginning)
    if is_whole(wanted):
        return ledger.get(wanted)
    hits = [each for each in every if wanted and each.id.startswith(wanted)]
    if len(hits) == 1:
        return hits[0]
    if not hits:
        message = f"no ingestion id starts with {beginning!r}\nList ids with `lakegate runs`."
        raise LakegateError("UNKNOWN_INGESTION", message)
    ids = ", ".join(sorted(each.id[:ID_PART] for each in hits)[:5])
    message = f"{len(hits)} ingestion ids start with {beginning!r}: {ids} …\nGive more characters."
    raise LakegateError("AMBIGUOUS_ID", message)
