"""The simulation of queues and limits loses no file and agrees with queueing theory."""

import random
from dataclasses import replace
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.parameters import MOST_TOGETHER, Aws, Load, Settings, Shared, Steps
from benchmarks.simulation import Outcome, Stage, simulate

AWS = Aws(account_vcpus=100_000, starts=1e9, page=0.0)
NO_TIME = Steps(*[0.0] * 14)
OPEN = Settings(
    upload_lambdas=50, run_lambdas=20, runs=1000, vcpus=100_000, nessie=100.0, shared_runs=0
)
SHARED = replace(OPEN, shared_runs=1)


def exponential(rng: random.Random, mean: float) -> float:
    """Return an exponential time, as queueing theory assumes."""
    return rng.expovariate(1 / mean) if mean else 0.0


def exactly(_: random.Random, mean: float) -> float:
    """Return a time that does not vary."""
    return mean


loads = st.builds(
    Load,
    rate=st.floats(1, 300),
    minutes=st.floats(1, 10),
    tables=st.integers(1, 5),
    burst=st.integers(1, 40),
    failing=st.floats(0, 0.5),
    lost=st.floats(0, 0.5),
)
deployments = st.builds(
    Settings,
    upload_lambdas=st.integers(2, 10),
    run_lambdas=st.integers(2, 10),
    runs=st.integers(1, 200),
    vcpus=st.integers(8, 1000),
    warm_runs=st.integers(0, 10),
    shared_runs=st.integers(0, 3),
    idle=st.floats(1, 120),
    run_minutes=st.floats(1, 50),
)


@settings(max_examples=15)
@given(loads, deployments)
def test_in_the_end_every_file_is_published(load: Load, deployment: Settings) -> None:
    """Deliveries fail and events get lost, yet in time each landed file is published once."""
    outcome = simulate(load, deployment, aws=AWS, until=30 * 24 * 3600.0)
    assert {file.stage for file in outcome.files} <= {Stage.PUBLISHED}
    assert all(file.landed < file.published for file in outcome.files)
    assert deployment.shared_runs or outcome.runs == len(outcome.files)
    assert outcome.commits * MOST_TOGETHER >= len(outcome.files)


@pytest.mark.parametrize(("servers", "busy"), [(1, 0.5), (3, 0.7), (8, 0.8)])
def test_waiting_for_a_run_is_what_erlang_says(servers: int, busy: float) -> None:
    """With Poisson arrivals and exponential runs alone it is an M/M/c queue."""
    run = 10.0
    arrivals = busy * servers / run
    deployment = replace(OPEN, runs=servers, run_lambdas=50, upload_lambdas=50)
    aws = replace(AWS, event=0.0, cold=0.0)
    load = Load(60 * arrivals, 5_000 / arrivals / 60, failing=0, lost=0)
    outcome = simulate(load, deployment, replace(NO_TIME, session=run), aws, vary=exponential)
    mean = sum(outcome.latencies) / len(outcome.latencies)
    waits = erlang_c(servers, busy) / (servers / run - arrivals)
    assert mean == pytest.approx(waits + run, rel=0.08)


def erlang_c(servers: int, busy: float) -> float:
    """Return the probability that an arrival finds all servers taken (Erlang's C formula)."""
    offered = servers * busy
    all_taken = offered**servers / factorial(servers) / (1 - busy)
    return all_taken / (sum(offered**n / factorial(n) for n in range(servers)) + all_taken)


@pytest.mark.parametrize(
    ("deployment", "steps", "aws", "a_second"),
    [
        (replace(OPEN, runs=10), replace(NO_TIME, session=20.0), AWS, 0.5),
        (replace(OPEN, vcpus=16), replace(NO_TIME, session=20.0), AWS, 0.1),
        (OPEN, replace(NO_TIME, session=20.0), replace(AWS, account_vcpus=16), 0.1),
        (replace(OPEN, upload_lambdas=2), replace(NO_TIME, upload=0.5), AWS, 4.0),
        (OPEN, NO_TIME, replace(AWS, starts=5.0), 5.0),
        (replace(OPEN, nessie=1.0, upload_lambdas=2), replace(NO_TIME, create=0.25), AWS, 4.0),
    ],
    ids=["concurrent runs", "vCPUs", "the account's vCPUs", "uploads", "StartJobRun", "Nessie"],
)
def test_it_publishes_as_fast_as_the_narrowest_place_lets_through(
    deployment: Settings, steps: Steps, aws: Aws, a_second: float
) -> None:
    """Under too great a load the narrowest place sets the files published a second."""
    load = Load(rate=60 * a_second * 3, minutes=15, tables=10**9, failing=0, lost=0)
    outcome = simulate(load, deployment, steps, replace(aws, cold=0.0))
    assert len(outcome.latencies) / 900 == pytest.approx(a_second, rel=0.07)


@pytest.mark.parametrize(("burst", "last"), [(25, 0), (64, 39)])
def test_starts_are_taken_at_once_and_then_one_after_the_other(burst: int, last: int) -> None:
    """Of a burst EMR Serverless starts 25 runs at once, and then one a second."""
    load = Load(rate=burst, minutes=0.999, burst=burst, tables=10**9, failing=0, lost=0)
    aws = replace(AWS, starts=1.0, event=0.0, cold=0.0)
    outcome = one_burst(load, replace(OPEN, upload_batch=1), NO_TIME, aws)
    assert max(outcome.latencies) == pytest.approx(last, abs=0.01)


@pytest.mark.parametrize(("tables", "most", "least"), [(1, 31, 2), (10**9, 64, 64)])
def test_files_of_one_table_share_commits(tables: int, most: int, least: int) -> None:
    """Files of one table that end at once share commits; those of many tables need one each."""
    load = Load(rate=64, minutes=0.999, burst=64, tables=tables, failing=0, lost=0)
    assert least <= one_burst(load, OPEN).commits <= most


def one_burst(
    load: Load,
    deployment: Settings,
    steps: Steps = Steps(),  # noqa: B008
    aws: Aws = AWS,
) -> Outcome:
    """Return the outcome of a seed for which exactly one burst lands."""
    outcomes = (
        simulate(load, deployment, steps, aws, seed, until=7200, vary=exactly) for seed in range(9)
    )
    return next(outcome for outcome in outcomes if len(outcome.files) == load.burst)


def test_a_shared_run_takes_a_hundred_files_of_a_table_together() -> None:
    """Under too great a load one shared run ingests group after group, in its measured time."""
    a_second = MOST_TOGETHER / Shared().seconds(MOST_TOGETHER)
    load = Load(rate=60 * a_second * 3, minutes=15, failing=0, unclean=0)
    outcome = simulate(load, SHARED, NO_TIME, replace(AWS, cold=0.0))
    assert outcome.runs == 1
    assert len(outcome.latencies) / 900 == pytest.approx(a_second, rel=0.07)


@pytest.mark.parametrize(("idle", "minutes", "runs"), [(1e6, 1e6, 1), (1e6, 20, 6), (1, 1e6, 50)])
def test_a_shared_run_ends_when_it_is_idle_or_its_time_is_over(
    idle: float, minutes: float, runs: int
) -> None:
    """The next file then starts another run, so there are more runs the sooner they end."""
    deployment = replace(SHARED, idle=idle, run_minutes=minutes)
    outcome = simulate(Load(rate=1, minutes=120), deployment, aws=AWS)
    assert outcome.runs == pytest.approx(runs, rel=0.2)


@pytest.mark.parametrize(("slots", "runs"), [(1, 1), (2, 2), (9, 3)])
def test_a_run_more_starts_for_each_250_files_that_wait(slots: int, runs: int) -> None:
    """The sweep starts as many runs as the waiting files need and the slots allow."""
    load = Load(rate=700, minutes=0.999, burst=700, tables=10**9, failing=0, lost=0)
    outcome = one_burst(load, replace(SHARED, shared_runs=slots, sweep=10.0), NO_TIME)
    assert (outcome.runs, outcome.queued) == (runs, 700)


def test_the_same_seed_gives_the_same_outcome() -> None:
    """The seed and the figures alone decide the outcome."""
    load = Load(rate=60, minutes=30, burst=3, tables=3)
    first, again, other = (simulate(load, seed=seed).latencies for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_message_that_fails_is_retried_and_then_waits_for_the_sweep() -> None:
    """One failure costs the visibility timeout; after the last retry the sweep helps."""
    load = Load(rate=30, minutes=60, lost=0, failing=0.5)
    outcome = simulate(load, replace(OPEN, receives=2), aws=AWS, until=86_400)
    assert outcome.dead > 0
    assert outcome.latencies[-1] > Settings.visibility
    assert len(outcome.latencies) == len(outcome.files)
