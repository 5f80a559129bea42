"""Guards of files that may remove rows of others."""

from dataclasses import replace
from typing import Any

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion
from functions.pipeline.publication import publish, rebase
from functions.pipeline.publication import replace as replacement
from functions.pipeline.publication.rebase import Unit
from tests.fakes.guards.guard import Guard, nothing
from tests.fakes.openings import (
    A_LATE_EVENT,
    A_REJECTED_ONE_AND_A_LATER,
    A_VERSION_APPROVED_IN_ORDER,
    ONE_BY_ONE,
)
from tests.fakes.sabotage import Patch


def _register_again(
    next_intent: Any, adapters: Adapters, refused: Unit, elsewhere: set[str]
) -> Any:
    if refused.members[0].terms.is_ordered:
        return rebase.rebase(adapters, refused, elsewhere)
    return next_intent(adapters, refused, elsewhere)


def _give_way_as_others(given_way: Any, adapters: Adapters, ingestion: Ingestion) -> Any:
    late = given_way(adapters, ingestion.but(terms=replace(ingestion.terms, write_mode="append")))
    return late and late.but(terms=ingestion.terms)


ORDERING = (
    Guard(
        "an older file does not replace the rows of a newer one",
        "out of order",
        (Patch(publish, "overtaken", nothing),),
        opening=A_LATE_EVENT,
    ),
    Guard(
        "who approves failed checks has not approved the order",
        "out of order",
        (
            Patch(
                Ingestion,
                "is_approved_despite",
                lambda _, each, code: each.decisions.approval is not None,
            ),
        ),
        opening=A_REJECTED_ONE_AND_A_LATER,
    ),
    Guard(
        "a file that replaces rows is not registered again",
        "lost or doubled|not only its rows|of the key",
        (Patch(publish, "_next_intent", _register_again),),
        opening=ONE_BY_ONE,
    ),
    Guard(
        "a version that comes first in order does not wait for a newer one",
        "never at rest",
        (Patch(replacement, "given_way", _give_way_as_others),),
        opening=A_VERSION_APPROVED_IN_ORDER,
    ),
)
