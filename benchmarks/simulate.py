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
    run_lambdas=20,
    runs=1000,
    vcpus=8000,
    warm_runs=20,
    nessie=200 * Steps().nessie,  # it takes 200 files a second
)
_SHARED = replace(_TURNED_UP, files_a_run=50, linger=60.0)


@dataclass(frozen=True)
class Scenario:
    """A load on a deployment."""

    name: str
    load: Load
    settings: Settings
    aws: Aws = _QUOTA


_ONE, _MANY = 1, 100
SCENARIOS = (
    Scenario("1 a minute, new account", Load(1, 720), _SHIPPED, Aws()),
    Scenario("1 a minute", Load(1, 720), _SHIPPED),
    Scenario("1 a minute, in bursts of 64", Load(1, 2880, burst=64), _SHIPPED),
    Scenario("10 a minute, one table", Load(10, 240, _ONE), _SHIPPED),
    Scenario("  shared runs", Load(10, 240, _ONE), replace(_SHIPPED, files_a_run=50)),
    Scenario("100 a minute, one table", Load(100, 60, _ONE), _SHIPPED),
    Scenario("100 a minute, many tables", Load(100, 60, _MANY), _SHIPPED),
    Scenario("  turned up, one table", Load(100, 60, _ONE), _TURNED_UP),
    Scenario("  turned up, many tables", Load(100, 60, _MANY), _TURNED_UP),
    Scenario(
        "  shipped, shared runs, one table", Load(100, 60, _ONE), replace(_SHIPPED, files_a_run=50)
    ),
    Scenario("10,000 a minute, many tables", Load(10_000, 5, _MANY), _SHIPPED),
    Scenario("  turned up, many tables", Load(10_000, 5, _MANY), _TURNED_UP),
    Scenario("  shared runs, one table", Load(10_000, 5, _ONE), _SHARED),
    Scenario("  shared runs, many tables", Load(10_000, 5, _MANY), _SHARED),
)


def table(scenarios: Iterable[Scenario] = SCENARIOS, seed: int = 1) -> Iterator[str]:
    """Yield a line for each scenario, below a line with the columns' names."""
    yield f"{'files':34}{'median':>9}{'p95':>9}{'p99':>9}{'a minute':>10}  waiting at the end"
    for scenario in scenarios:
        yield _line(scenario, seed)


def _line(scenario: Scenario, seed: int) -> str:
    load = scenario.load
    outcome = simulate(load, scenario.settings, aws=scenario.aws, seed=seed)
    took = outcome.latencies
    times = "".join(f"{_time(_quantile(took, part)):>9}" for part in (0.5, 0.95, 0.99))
    late = sum(file.published > load.minutes * 40 for file in outcome.files)  # the last third
    waiting = Counter(file.stage for file in outcome.files)
    place = max((Stage.UPLOADED, Stage.STARTED, Stage.ENDED), key=lambda stage: waiting[stage])
    backlog = len(outcome.files) - len(took)
    return f"{scenario.name:34}{times}{late / (load.minutes / 3):>10,.0f}  {backlog:,} ({place})"


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
