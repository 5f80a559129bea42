"""What job runs cost, in memory, with the real ledger's conditions."""

from collections import defaultdict
from dataclasses import replace

from functions.adapters.ledger.notes import Moved
from functions.model.budget import Charge, Spending


class FakeCharges:
    """The charges of job runs, and the sums of each day."""

    def __init__(self) -> None:
        self._charges: dict[str, Charge] = {}
        self._unmeasured: defaultdict[str, set[str]] = defaultdict(set)

    def spending(self, day: str) -> Spending:
        known = [each for each in self._charges.values() if each.day == day]
        used, held = sum(each.used for each in known), sum(each.held for each in known)
        return Spending(day, used, held, frozenset(self._unmeasured[day]))

    def note_unmeasured(self, day: str, run: str) -> None:
        self._unmeasured[day].add(run)

    def charge(self, name: str) -> Charge:
        return self._charges.get(name, Charge(name))

    def save_charge(self, old: Charge, new: Charge, budget: int = 0) -> bool:
        if self.charge(new.name).revision != old.revision:
            raise Moved([new.name])
        if not self.spending(new.day).admits(budget):
            return False
        self._charges[new.name] = replace(new, revision=old.revision + 1)
        self._unmeasured[new.day].discard(new.run)
        return True
