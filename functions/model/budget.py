"""The budget of a day: what its job runs cost, and whether one more may be started.

    a run is to be started → of the day's amount the most is held that the run may cost
    it ended               → what EMR Serverless billed for it takes the place of that
    used and held together reach the budget → no run is started until one ends, or the next day

A run counts for the day (UTC, by Lakegate's own clock) on which its amount was held. So a day's
runs cost at most the budget, and what one run may cost. Amounts are millionths of a dollar.
"""

from dataclasses import dataclass, replace
from math import ceil

# List prices in US dollars of us-east-1 for ARM64, from which docs/scale.md is computed, too.
VCPU_HOUR = 0.042094
GB_HOUR = 0.004628
STORAGE_GB_HOUR = 0.000111  # beyond the 20 GB that each worker has

MILLION = 1_000_000


@dataclass(frozen=True)
class Use:
    """What a job run used, or may use: hours of vCPUs, and of gigabytes of memory and storage."""

    vcpu_hours: float = 0.0
    memory_gb_hours: float = 0.0
    storage_gb_hours: float = 0.0

    @property
    def cost(self) -> int:
        """Return its cost in millionths of a dollar, rounded up."""
        memory, storage = self.memory_gb_hours * GB_HOUR, self.storage_gb_hours * STORAGE_GB_HOUR
        return ceil(MILLION * (self.vcpu_hours * VCPU_HOUR + memory + storage))


@dataclass(frozen=True)
class Charge:
    """What a job run counts for on its day: what is held for it, or what it used.

    `run` is its id once it is counted for good, `revision` the number of saves.
    """

    name: str
    day: str = ""
    held: int = 0
    used: int = 0
    run: str = ""
    revision: int = 0

    @property
    def counts(self) -> bool:
        """Return whether an amount is held for it, or it is counted for good."""
        return bool(self.held or self.run)

    def holding(self, day: str, amount: int) -> "Charge":
        """Return it with an amount that is held on a day; nothing may be held before."""
        return replace(self, day=day, held=amount)

    def counted(self, day: str, run: str, amount: int) -> "Charge":
        """Return it for a run that ended; one for which nothing was held counts for that day."""
        return replace(self, day=self.day or day, held=0, used=amount, run=run)


@dataclass(frozen=True)
class Spending:
    """What the job runs of a day cost.

    `used` is what the ended ones cost, `held` the most that the others may cost. `unmeasured` are
    the ids of those that ended and whose bill EMR Serverless did not tell yet.
    """

    day: str
    used: int = 0
    held: int = 0
    unmeasured: frozenset[str] = frozenset()

    def admits(self, budget: int) -> bool:
        """Return whether one more run may be started under a budget in dollars, 0 for none."""
        return not budget or self.used + self.held < budget * MILLION

    def is_used_up(self, budget: int) -> bool:
        """Return whether none is started any more on this day, whatever else ends."""
        return 0 < budget * MILLION <= self.used

    def amounts(self, budget: int) -> str:
        """Describe what is used and held of a budget."""
        held = f", and runs under way may use {dollars(self.held)}" if self.held else ""
        return f"{dollars(self.used)} of {dollars(budget * MILLION)} are used{held}"

    def why_wait(self, budget: int) -> str:
        """Describe why no run is started, "" if one may be."""
        if self.admits(budget):
            return ""
        amounts = self.amounts(budget)
        if self.is_used_up(budget):
            return f"the day's budget is used up until 00:00 UTC: {amounts} (DailyBudgetUsd)"
        return f"the day's budget has no room until a run ends: {amounts} (DailyBudgetUsd)"


def dollars(amount: int) -> str:
    """Return millionths of a dollar as text: `$12.30`."""
    return f"${amount / MILLION:,.2f}"
