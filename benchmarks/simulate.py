"""Print how long files take under a load and where they wait.

`python -m benchmarks.simulate [--seed N]` always prints the same for a seed. The figures behind it
are in benchmarks/parameters.py.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

from benchmarks.parameters import Aws, Load, Settings, Steps
from benchmarks.simulation import Stage, simulate

_QUOTA = Aws(account_vcpus=100_000)  # an account whose quota was raised
_SHIPPED = Settings()
_TURNED_UP = Settings(
    upload_lambdas=60,
    run_lambdas=60,
    runs=1000,
    vcpus=8000,
    warm_runs=20,
    nessie=200 * Steps().nessie,  # it takes 200 files a second
    shared_runs=60,
)
_ONE, _MANY = 1, 100
_COLUMNS = ("median", "p95", "p99", "a minute", "runs", "queue")


def _own(settings: Settings) -> Settings:
    return replace(settings, shared_runs=0)


@dataclass(frozen=True)
class Scenario:
    """A load on a deployment."""

    name: str
    load: Load
    settings: Settings = _SHIPPED


SCENARIOS = (
    Scenario("1 a minute", Load(1, 720)),
    Scenario("  RunIdleSeconds: 600", Load(1, 720), replace(_SHIPPED, idle=600.0)),
    Scenario("  SharedRuns: 0", Load(1, 720), _own(_SHIPPED)),
    Scenario("1 a minute, in bursts of 64", Load(1, 2880, burst=64)),
    Scenario("  SharedRuns: 0", Load(1, 2880, burst=64), _own(_SHIPPED)),
    Scenario("100 a minute, one table", Load(100, 120, _ONE)),
    Scenario("100 a minute, many tables", Load(100, 120, _MANY)),
    Scenario("  SharedRuns: 0", Load(100, 120, _MANY), _own(_SHIPPED)),
    Scenario("  turned up", Load(100, 120, _MANY), _TURNED_UP),
    Scenario("  turned up, SharedRuns: 0", Load(100, 120, _MANY), _own(_TURNED_UP)),
    Scenario("10,000 a minute, many tables", Load(10_000, 20, _MANY)),
    Scenario("  turned up, one table", Load(10_000, 20, _ONE), _TURNED_UP),
    Scenario("  turned up, many tables", Load(10_000, 20, _MANY), _TURNED_UP),
    Scenario("  turned up, SharedRuns: 0", Load(10_000, 20, _MANY), _own(_TURNED_UP)),
)


def table(scenarios: Iterable[Scenario] = SCENARIOS, seed: int = 1) -> Iterator[str]:
    """Yield a line for each scenario, below a line with the columns' names."""
    yield f"{'files':30}" + "".join(f"{name:>9}" for name in _COLUMNS) + "  waiting at the end"
    for scenario in scenarios:
        yield _line(scenario, seed)


def _line(scenario: Scenario, seed: int) -> str:
    load = scenario.load
    outcome = simulate(load, scenario.settings, aws=_QUOTA, seed=seed)
    took = outcome.latencies
    times = [_time(_quantile(took, part)) for part in (0.5, 0.95, 0.99)]
    late = sum(file.published > load.minutes * 40 for file in outcome.files)  # the last third
    numbers = late / (load.minutes / 3), outcome.runs, outcome.queued
    cells = "".join(f"{cell:>9}" for cell in (*times, *(f"{number:,.0f}" for number in numbers)))
    waiting = Counter(file.stage for file in outcome.files)
    place = max((Stage.UPLOADED, Stage.STARTED, Stage.ENDED), key=lambda stage: waiting[stage])
    return f"{scenario.name:30}{cells}  {len(outcome.files) - len(took):,} ({place})"


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else nan


def _time(seconds: float) -> str:
    if isnan(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def main() -> None:
    """Simulate every scenario and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate")
    parser.add_argument("--seed", type=int, default=1)
    for line in table(seed=parser.parse_args().seed):
        print(line)


if __name__ == "__main__":
    main()
