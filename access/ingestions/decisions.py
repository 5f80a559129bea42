"""Find the failed ingestions that people name, and publish one of them anyway."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from access.ingestions.identify import each_identified, identified
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion
from functions.notifications import unreadable
from functions.operations.decisions.cause import waiting, waiting_with
from lakegate.errors import LakegateError
from lakegate.job.landing import ID_PART

if TYPE_CHECKING:  # it imports AWS's library: a second that help does not need
    from functions.operations.decisions.failed import Outcome

_ID = re.compile(f"[0-9a-f]{{{ID_PART},32}}")  # a shorter one may be a word, such as facade


def chosen(adapters: Adapters, identities: Sequence[str], cause: str) -> list[Ingestion]:
    """Return the ingestions with these ids, or those that wait for a decision with a cause.

    Each comes once. A cause is named by as much of the id of an ingestion that has it as lists
    show, or by words in its reason. Raises LakegateError as `identified`, WHICH_ONES without either
    or with both, NONE_WAITS for no such ingestion.
    """
    if bool(identities) is bool(cause):
        message = "which ingestions?\nGive ids of `lakegate runs --waiting`, or `--cause TEXT`."
        raise LakegateError("WHICH_ONES", message)
    ingestions = each_identified(adapters.ledger, identities)
    ingestions += with_cause(adapters, cause) if cause else []
    return list({each.id: each for each in ingestions}.values())


def with_cause(adapters: Adapters, cause: str) -> list[Ingestion]:
    """Return the ingestions that wait for a decision with a cause: see `chosen`."""
    if _ID.fullmatch(cause.lower()):
        ingestions = waiting_with(adapters.ledger, identified(adapters.ledger, cause))
    else:
        ingestions = [each for each in waiting(adapters.ledger) if _has_words(each, cause)]
    if not ingestions:
        message = f"nothing waits with the cause {cause}\nCauses: `lakegate runs --waiting`."
        raise LakegateError("NONE_WAITS", message)
    return ingestions


def _has_words(ingestion: Ingestion, words: str) -> bool:
    reason = ingestion.reason
    told = f"{reason.code} {reason.message}" if reason else ""
    return words.lower() in told.lower()


def publish(
    adapters: Adapters,
    ingestion: Ingestion,
    by: str,
    reason: str,
    *,
    despite: str,
    null_unreadable: bool,
    confirm: Callable[[str], None],
) -> "Outcome":
    """Publish anyway; if rows could not be read, `confirm` what becomes of them first.

    `confirm` takes a sentence for people, and raises to stop. Raises LakegateError as
    `functions.operations.decisions.failed.publish_anyway` does.
    """
    from access.ingestions.shown_report import shown_report
    from functions.operations.decisions import failed
    from functions.operations.decisions.preconditions import require_publishable

    require_publishable(adapters, ingestion, despite)
    report = shown_report(adapters, ingestion)
    if notice := unreadable.named(report, null_unreadable=null_unreadable):
        confirm(notice)
    return failed.publish_anyway(
        adapters, ingestion, by, reason, despite=despite, null_unreadable=null_unreadable
    )
