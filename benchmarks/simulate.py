"""How long do files take, and where do they pile up? `python -m benchmarks.simulate [--seed N]`.

Deterministic by its seed. The figures behind it are in benchmarks/parameters.py.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

from benchmarks.parameters import Aws, Load, Settings, Steps
from benchmarks.queueing import Outcome, Stage
from benchmarks.simulation import simulate

_BARS = " ▁▂▃▄▅▆▇█"
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


@dataclass(frozen=True)
class Result:
    """What came of it: latencies in seconds; `place` is where most files were at the end."""

    landed: int
    published: int
    median: float
    p95: float
    p99: float
    a_minute: float
    backlog: int
    place: str
    runs: int
    curve: tuple[int, ...]


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


def run(scenario: Scenario, seed: int) -> Result:
    """Simulate it."""
    outcome = simulate(scenario.load, scenario.settings, aws=scenario.aws, seed=seed)
    took = outcome.latencies
    waiting = [_waiting(sample) for sample in outcome.backlog]
    late = sum(f.published > scenario.load.minutes * 40 for f in outcome.files)
    stage = max((s for s in Stage if s is not Stage.PUBLISHED), key=lambda s: _at_end(outcome, s))
    return Result(
        landed=len(outcome.files),
        published=len(took),
        median=_quantile(took, 0.5),
        p95=_quantile(took, 0.95),
        p99=_quantile(took, 0.99),
        a_minute=late / (scenario.load.minutes / 3),
        backlog=len(outcome.files) - len(took),
        place=stage.value,
        runs=outcome.runs,
        curve=tuple(waiting),
    )


def bars(curve: Sequence[int]) -> str:
    """The curve as one line of text, its highest point a full block."""
    highest = max(curve, default=0) or 1
    return "".join(_BARS[-(-value * (len(_BARS) - 1) // highest)] for value in curve)


def main() -> None:
    """Simulate every scenario, and print a table and the backlogs' curves."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate")
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    results = {scenario: run(scenario, seed) for scenario in SCENARIOS}
    print(header())
    for scenario, result in results.items():
        print(line(scenario, result))
    print("\nWaiting, from the first to the last minute of the load; a full block is the most:")
    for scenario, result in results.items():
        print(f"{scenario.name:34}|{bars(result.curve)}| {max(result.curve, default=0):,}")


def header() -> str:
    """What stands above the table's columns."""
    return f"{'files':34}{'median':>9}{'p95':>9}{'p99':>9}{'a minute':>10}  waiting at the end"


def line(scenario: Scenario, result: Result) -> str:
    """One line of the table."""
    times = "".join(f"{_time(t):>9}" for t in (result.median, result.p95, result.p99))
    where = f"{result.backlog:,} ({result.place})"
    return f"{scenario.name:34}{times}{result.a_minute:>10,.0f}  {where}"


def _waiting(sample: dict[Stage, int]) -> int:
    return sum(n for stage, n in sample.items() if stage is not Stage.PUBLISHED)


def _at_end(outcome: Outcome, stage: Stage) -> int:
    return sum(file.stage is stage for file in outcome.files)


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else nan


def _time(seconds: float) -> str:
    if isnan(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


if __name__ == "__main__":
    main()
