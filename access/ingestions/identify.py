"""Find an ingestion by its id, or by the first characters of it."""

import re
from collections.abc import Sequence
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


def whole(ledger: "Ledger", beginning: str) -> str:
    """Return the id that starts so, "" for "". Raises as `identified`."""
    return identified(ledger, beginning).id if beginning else ""


def each_identified(ledger: "Ledger", beginnings: Sequence[str]) -> "list[Ingestion]":
    """Return the same for each; the ledger is read once for all that are no whole ids.

    Of all that it has, which may be millions, only outlines are read.
    """
    cut = tuple(filter(None, (_id(each) for each in beginnings if not is_whole(_id(each)))))
    every = [each.id for each in ledger.outlines() if each.id.startswith(cut)] if cut else []
    ids = [_one(each, every) for each in beginnings]
    known = {} if len(ids) == 1 else {each.id: each for each in ledger.together(ids)}
    return [known.get(id_) or ledger.get(id_) for id_ in ids]


def _id(beginning: str) -> str:
    return beginning.strip().lower()


def _one(beginning: str, every: Sequence[str]) -> str:
    """Return the whole id that begins so, of `every` one that may be meant."""
    wanted = _id(beginning)
    if is_whole(wanted):
        return wanted
    hits = [each for each in every if wanted and each.startswith(wanted)]
    if len(hits) == 1:
        return hits[0]
    if not hits:
        message = f"no ingestion id starts with {beginning!r}\nList ids with `lakegate runs`."
        raise LakegateError("UNKNOWN_INGESTION", message)
    ids = ", ".join(sorted(each[:ID_PART] for each in hits)[:5])
    message = f"{len(hits)} ingestion ids start with {beginning!r}: {ids} …\nGive more characters."
    raise LakegateError("AMBIGUOUS_ID", message)
