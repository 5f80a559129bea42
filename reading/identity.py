"""An ingestion by its id, or by as much of it as a person types."""

from functions.ingestion import Ingestion
from functions.ledger import Ledger
from lakegate.errors import LakegateError
from lakegate.landing import ID_PART

_ID_LENGTH = 32


def identified(ledger: Ledger, beginning: str) -> Ingestion:
    """The one ingestion whose id begins so.

    Raises LakegateError UNKNOWN_INGESTION when there is none, AMBIGUOUS_ID when there are several.
    """
    wanted = beginning.strip().lower()
    if len(wanted) == _ID_LENGTH:
        return ledger.get(wanted)
    found = [each for each in ledger.all() if wanted and each.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"no ingestion's id begins with {beginning!r}; `lakegate runs` lists them"
        raise LakegateError("UNKNOWN_INGESTION", message)
    ids = ", ".join(sorted(each.id[:ID_PART] for each in found)[:5])
    message = f"{len(found)} ingestions' ids begin with {beginning!r} ({ids} …): give more of it"
    raise LakegateError("AMBIGUOUS_ID", message)
