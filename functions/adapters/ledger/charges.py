"""The ledger's items about what job runs cost: one for each run, and one with a day's sums."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

from functions.adapters.dynamodb import Contended, TransactionCancelled, as_read, translated
from functions.adapters.ledger.notes import UNAVAILABLE, Moved, Notes
from functions.model.budget import MILLION, Charge, Spending

_TRIES = 5  # of a write to a day's sums, which another run's write may disturb
_TEXTS = ("name", "day", "run")


class Charges(Notes):
    """What job runs cost, as the ledger's table keeps it."""

    def spending(self, day: str) -> Spending:
        """Return what the job runs of a day (`2026-11-27`) cost."""
        kept = self._kept(_sums(day))
        used, held = (int(kept.get(name, 0)) for name in ("sum_used", "sum_held"))
        return Spending(day, used, held, frozenset(kept.get("unmeasured", ())))

    def note_unmeasured(self, day: str, run: str) -> None:
        """Note that a run of a day ended without a bill, until it is counted."""
        with translated(UNAVAILABLE):
            self._table.update_item(
                Key={"id": _sums(day)},
                UpdateExpression="ADD unmeasured :runs",
                ExpressionAttributeValues={":runs": {run}},
            )

    def charge(self, name: str) -> Charge:
        """Return what a job run of this name counts for, nothing without an item."""
        kept = self._kept(_id(name))
        names = [each.name for each in fields(Charge) if each.name in kept]
        known: dict[str, Any] = {each: kept[each] for each in names}
        numbers = {each: int(known[each]) for each in names if each not in _TEXTS}
        return Charge(**{"name": name} | known | numbers)

    def save_charge(self, old: Charge, new: Charge, budget: int = 0) -> bool:
        """Save a charge, and add what changed to the sums of its day, in one transaction.

        With a budget (in dollars) the day's sums must be below it; else nothing is saved, and False
        returned. Raises Moved if another process saved the charge meanwhile.
        """
        item = {**asdict(new), "id": _id(new.name), "revision": old.revision + 1}
        put = {"TableName": self._table.name, "Item": item, **as_read(old.revision)}
        try:
            self._write_at_once([{"Put": put}, {"Update": self._adding(old, new, budget)}])
        except TransactionCancelled as cancelled:
            if cancelled.failed[0]:
                raise Moved([new.name]) from cancelled
            return False
        return True

    def _adding(self, old: Charge, new: Charge, budget: int) -> dict[str, Any]:
        used, held = new.used - old.used, new.held - old.held
        values: dict[str, Any] = {":used": used, ":held": held, ":both": used + held}
        update = "ADD sum_used :used, sum_held :held, sum_both :both"
        request: dict[str, Any] = {"TableName": self._table.name, "Key": {"id": _sums(new.day)}}
        if new.run:
            update += " DELETE unmeasured :runs"
            values[":runs"] = {new.run}
        if budget:
            room = "attribute_not_exists(sum_both) OR sum_both < :most"
            request["ConditionExpression"], values[":most"] = room, budget * MILLION
        return {**request, "UpdateExpression": update, "ExpressionAttributeValues": values}

    def _write_at_once(self, writes: Sequence[Mapping[str, Any]]) -> None:
        for _ in range(_TRIES - 1):
            with suppress(Contended):
                return self._transact_writes(writes)
        return self._transact_writes(writes)

    def _transact_writes(self, writes: Sequence[Mapping[str, Any]]) -> None:
        with translated(UNAVAILABLE):
            self._table.meta.client.transact_write_items(TransactItems=writes)


def _id(name: str) -> str:
    """Return the id of the item about a run, which is no ingestion."""
    return f"charge {name}"


def _sums(day: str) -> str:
    """Return the id of the item with a day's sums."""
    return f"spent {day}"
