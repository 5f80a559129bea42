"""What of a table's rows people may not see, by the contract that judged them and by today's."""

from collections.abc import Iterable
from dataclasses import dataclass

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing
from lakegate.contract.model import Contract


@dataclass(frozen=True)
class Concealment:
    """`every` row is concealed, or else the values of these `columns`, spelt in lower case."""

    every: bool
    columns: frozenset[str]

    @classmethod
    def by(cls, contracts: Iterable[Contract]) -> "Concealment":
        """What any of several contracts conceals."""
        each = tuple(contracts)
        return cls(
            every=not all(contract.allow_samples for contract in each),
            columns=frozenset(name.lower() for contract in each for name in contract.concealed),
        )

    def hides(self, column: str) -> bool:
        """Whether no value of the column may be shown, in whatever case its name is spelt."""
        return self.every or column.lower() in self.columns


def concealment(adapters: Adapters, judged_by: Contract, key: str) -> Concealment:
    """What the contract that judged a file conceals, and what the one in force by now does.

    `key` is where the contract lies. Raises ContractInvalid where the one in force cannot be read:
    nobody knows then what it hides.
    """
    try:
        return Concealment.by((judged_by, adapters.lake.contract_at(key, "").contract))
    except Missing:
        return Concealment.by((judged_by,))
