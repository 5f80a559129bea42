"""The simulation of queues and limits loses no file and agrees with queueing theory."""

import random
from dataclasses import replace
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.parameters import MOST_TOGETHER, Aws, Load, Settings, Steps
from benchmarks.simulation import Stage, simulate

AWS = Aws(account_vcpus=100_000, starts=1e9, page=0.0)
NO_TIME = Steps(*[0.0] * 13)
OPEN = Settings(upload_lambdas=50, run_lambdas=20, runs=1000, vcpus=100_000, nessie=100.0)


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
    files_a_run=st.integers(1, 30),
    linger=st.floats(0, 120),
)


@settings(max_examples=15)
@given(loads, deployments)
def test_in_the_end_every_file_is_published(load: Load, deployment: Settings) -> None:
    """Deliveries fail and events get lost, yet in time each landed file is published once."""
    outcome = simulate(load, deployment, aws=AWS, until=30 * 24 * 3600.0)
    assert {file.stage for file in outcome.files} <= {Stage.PUBLISHED}
    assert all(file.landed < file.branched < file.published for file in outcome.files)
    assert outcome.runs * deployment.files_a_run >= len(outcome.files)
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


@pytest.mark.parametrize(("tables", "most", "least"), [(1, 31, 2), (10**9, 64, 64)])
def test_files_of_one_table_share_commits(tables: int, most: int, least: int) -> None:
    """Files of one table that end at once share commits; those of many tables need one each."""
    load = Load(rate=64, minutes=0.999, burst=64, tables=tables, failing=0, lost=0)
    outcomes = (simulate(load, OPEN, aws=AWS, seed=n, until=3600, vary=exactly) for n in range(9))
    once = next(outcome for outcome in outcomes if len(outcome.files) == 64)
    assert least <= once.commits <= most


def test_files_that_share_a_run_start_once() -> None:
    """A full run starts at once; one that is not full starts when its time is up."""
    load = Load(rate=100, minutes=30, failing=0, lost=0)
    alone = simulate(load, OPEN, aws=AWS, until=7200)
    shared = simulate(load, replace(OPEN, files_a_run=10), aws=AWS, until=7200)
    assert alone.runs == len(alone.files)
    assert shared.runs == -(-len(shared.files) // 10)
    late = simulate(load, replace(OPEN, files_a_run=10**6, linger=60), aws=AWS, until=7200)
    assert late.runs == pytest.approx(30, abs=2)


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
