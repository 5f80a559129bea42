"""The ledger's write units of files that share a group, counted over the fakes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from functions.adapters.ledger.groups import is_large, shared_items
from functions.adapters.ledger.intents import open_intents
from functions.adapters.ledger.items import to_item, whole_item
from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import Ingestion
from lakegate.job.shared_run import MOST_FILES
from tests.fakes.deployment import SETTINGS, Deployment
from tests.fakes.ledger import FakeLedger
from tests.fakes.write_units import Index, Item, units
from tests.template import resource

_TABLE = ""  # among the indexes
# A transaction takes the table's units twice; an index is written later, outside it.
_IN_A_TRANSACTION = 2
_SHARED = replace(
    SETTINGS, shared_runs=1, work_queue="http://sqs/work", job_run_queue="http://sqs/judged"
)


def units_a_file(files: int = MOST_FILES) -> float:
    """Return the write units of each of so many files that one group publishes.

    The writes of their slot, of which there is one a run, are not counted.
    """
    deployment = Deployment(_SHARED)
    charged = Charged(deployment.clock.now)
    deployment.ledger = charged
    deployment.adapters = replace(deployment.adapters, ledger=cast(Ledger, charged))
    for number in range(files):
        deployment.land(f"shop/orders/2026/11/21/orders-{number:04}.parquet")
    while deployment.waits:  # so that the run finds all of them at once
        deployment.deliver()
    deployment.settle()
    return charged.units / files


class Charged(FakeLedger):
    """A ledger that adds up the write units of its items, and of large groups; not of rebases."""

    def __init__(self, now: Callable[[], str]) -> None:
        super().__init__(now)
        described = resource("LedgerTable")["GlobalSecondaryIndexes"]
        self._indexes = [Index.of(each) for each in described]
        self._shared: dict[str, Item] = {}
        self.units = 0

    def begin(self, ingestion: Ingestion) -> Ingestion:
        """See Ledger.begin."""
        is_new = not self.known([ingestion.id])
        begun = super().begin(ingestion)
        if is_new:
            self._charge([None], [begun])
        return begun

    def save_all(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        """See Ledger.save_all; `save` comes here as well."""
        known = {each.id: to_item(each) for each in self.together([i.id for i in ingestions])}
        before = [known.get(each.id) for each in ingestions]
        saved = super().save_all(ingestions)
        self._charge_intents(ingestions, _IN_A_TRANSACTION)
        self._charge(before, saved)
        self._charge_shared(saved)
        return saved

    def save_each(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        """See Ledger.save_each."""
        before = {each.id: to_item(self.get(each.id)) for each in ingestions}
        saved = super().save_each(ingestions)
        self._charge_intents(ingestions, 1)
        for each in saved:
            self._charge([before[each.id]], [each])
        self._charge_shared(saved)
        return saved

    def _charge(self, before: Sequence[Item | None], saved: Sequence[Ingestion]) -> None:
        times = _IN_A_TRANSACTION if len(saved) > 1 else 1
        for old, new in zip(before, saved, strict=True):
            taken = units(old, to_item(new), self._indexes)
            self.units += sum(taken.values()) + (times - 1) * taken[_TABLE]

    def _charge_intents(self, left: Sequence[Ingestion], times: int) -> None:
        """Charge the items that close with the groups that these leave, of less than a kilobyte."""
        self.units += times * len(open_intents([each.shared_intent for each in left]))

    def _charge_shared(self, saved: Sequence[Ingestion]) -> None:
        """Charge the items that members share: by a transaction each time, else once."""
        members = (whole_item(each) for each in saved if is_large(each.group))
        shared = {each["id"]: each for whole in members for each in shared_items(whole)}
        for id_, item in shared.items():
            if len(saved) > 1 or id_ not in self._shared:
                self.units += sum(units(self._shared.get(id_), item, ()).values())
                self._shared[id_] = item
