"""What contracts hide of the data: by now, and more than when it was audited."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from functions.adapters.s3 import Lake, Missing
from functions.model.ingestion import Ingestion
from lakegate.audit.diagnosis import HIDDEN, WHOLE, cell_told
from lakegate.audit.report import ADDRESS, PLACE, TIMES
from lakegate.contract.model import Contract, ContractInvalid


@dataclass(frozen=True)
class Concealment:
    """The data to hide: `every` row, or else the values of `columns` (lower-case names).

    With neither it `reveals` everything, because a person asked for that. It `grew` if it hides
    anything that the contract of an audit showed: then words of that audit may tell it.
    """

    every: bool
    columns: frozenset[str]
    reveals: bool = False
    grew: bool = False

    @classmethod
    def by(cls, contracts: Iterable[Contract]) -> "Concealment":
        """Return everything that any of the contracts hides."""
        each = tuple(contracts)
        return cls(
            every=not all(contract.allow_samples for contract in each),
            columns=frozenset(name.lower() for contract in each for name in contract.concealed),
        )

    def hides(self, column: str) -> bool:
        """Return whether the column's values must be hidden; case does not matter."""
        return self.every or column.lower() in self.columns

    def since(self, audit: "Concealment") -> "Concealment":
        """Return it with whether it hides more than at an audit."""
        grew = not audit.every and (self.every or not self.columns <= audit.columns)
        return replace(self, grew=grew)


_NOTHING = Concealment(every=False, columns=frozenset())
_EVERYTHING = Concealment(every=True, columns=frozenset())


def hidden_now(lake: Lake, key: str, version: str) -> Concealment:
    """Return what the contract in force under a key hides; its `version` was that of an audit.

    It hides everything if it cannot be read. An audit by an unknown version showed everything.
    """
    try:
        stored = lake.contract_at(key, "")
    except Missing:
        return _NOTHING
    except ContractInvalid:
        return _EVERYTHING.since(_hidden_then(lake, key, version))
    now = Concealment.by((stored.contract,))
    if now == _NOTHING or (version and stored.version == version):
        return now
    return now.since(_hidden_then(lake, key, version))


def _hidden_then(lake: Lake, key: str, version: str) -> Concealment:
    try:
        return Concealment.by([lake.contract_at(key, version).contract] if version else [])
    except (Missing, ContractInvalid):
        return _NOTHING


def stored_contract(ingestion: Ingestion, table: str) -> tuple[str, str]:
    """Return key and version of the contract by which one of its tables' files was audited.

    Both are "" if the ledger was rebuilt from the report alone.
    """
    tables = [part.table for part in ingestion.parts] or [table]
    return dict(zip(tables, ingestion.contracts, strict=True)).get(table, ("", ""))


def masked(sample: Mapping[str, Any], hidden: Concealment) -> Mapping[str, Any]:
    """Return a report's sample row without the values that are hidden by now."""
    if cell_told(sample):
        whole = hidden.every or (hidden.columns and sample["column"] == WHOLE)
        hides = whole or hidden.hides(sample["column"] or "")
        return {**sample, "value": HIDDEN} if hides else sample
    kept = (PLACE, TIMES, *ADDRESS)
    return {n: HIDDEN if n not in kept and hidden.hides(n) else v for n, v in sample.items()}
