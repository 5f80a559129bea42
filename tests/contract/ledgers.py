"""Ledgers, and ingestions for them."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from functions.adapters.ledger.ledger import Ledger
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion
from lakegate.job.batch import BatchFile
from lakegate.job.landing import LandedObject
from tests.fakes.ledger import FakeLedger
from tests.template import ledger_table

AnyLedger = Ledger | FakeLedger
PARTS = (BatchFile("ä.csv", "v1", "e1", 10**12, "shop.orders", "c", "v2", 3, "hash"),)


def new_table(dynamodb: Any) -> Any:
    """Return an empty table with the template's keys and indexes."""
    return ledger_table(dynamodb, f"ledger-{uuid.uuid4().hex}")


def ingestion(number: int = 1, table: str = "", **changes: Any) -> Ingestion:
    """Return an ingestion for a table whose object landed in that minute."""
    time = f"2026-03-01T12:{number:02}:00.000+00:00"
    landed = LandedObject("landing", f"shop/orders/{number}", "v1", "e1", 10, "s", time)
    begun = Ingestion(f"{number:032x}", landed, terms=ContractTerms(table)).step("landed", time)
    return replace(begun, **changes)


def ids(found: Iterator[Ingestion]) -> list[int]:
    """Return the numbers of the results, in order."""
    return [int(each.id, 16) for each in found]
