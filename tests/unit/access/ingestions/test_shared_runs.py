"""Shared runs and the files that wait for them, as people see them."""

from dataclasses import replace

import pytest

from access.ingestions.outcomes import files_waiting, job_run, published_together, state, waits
from access.ingestions.shared_runs import load, runs_up, shared_runs
from functions.adapters.emr import RunState
from functions.model.ingestion import State
from tests.fakes.deployment import Deployment
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import rejected
from tests.unit.cli.cli_examples import PUBLISHED, QUEUED
from tests.unit.pipeline.test_shared_runs import SHARED


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment in which two files wait for a shared run."""
    made = Deployment(SHARED)
    for name in ("a", "b"):
        made.land(f"shop/orders/{name}.parquet")
    made.deliver()
    return made


def test_the_run_that_is_up_is_known(deployment: Deployment) -> None:
    """A slot's run is up until it ends; the files wait, whether or not it is."""
    (run,) = runs_up(deployment.adapters)
    seen = shared_runs(deployment.adapters)
    assert (seen.most, seen.files, seen.up, seen.failed) == (1, 2, (run,), ())
    assert run.name.startswith("shared-0-")
    deployment.jobs.end(run.id, RunState.SUCCESS)
    assert shared_runs(deployment.adapters) == replace(seen, up=())


def test_a_run_that_emr_deleted_is_not_up(deployment: Deployment) -> None:
    """A run that EMR does not know any more is no error."""
    (run,) = runs_up(deployment.adapters)
    deployment.jobs.lose(run.id)
    assert not list(runs_up(deployment.adapters))


def test_only_shared_runs_that_failed_lately_count(deployment: Deployment) -> None:
    """A failed run is known for an hour, also after its slot has the next one."""
    (first,) = runs_up(deployment.adapters)
    deployment.end_shared(first.id, RunState.FAILED)
    deployment.deliver()
    seen = shared_runs(deployment.adapters)
    assert [run.id for run in seen.failed] == [first.id]
    assert seen.up
    assert seen.up[0].id != first.id
    deployment.clock.pass_(3_700)
    assert shared_runs(deployment.adapters).failed == ()


def test_other_runs_that_failed_are_not_shared_runs() -> None:
    """The run of a single file is no shared run."""
    deployment = Deployment()
    deployment.land("shop/orders/a.parquet", script=rejected)
    deployment.settle()
    assert [run.state for run in deployment.jobs.runs()] == [RunState.FAILED]
    assert shared_runs(deployment.adapters).failed == ()


def test_the_load_is_told_where_it_is_known(deployment: Deployment) -> None:
    """Without an answer of SQS, and without waiting files, there are no words."""
    assert load(deployment.adapters) == "about 2 files wait or are in work"
    deployment.journal.strike("work.size", Fault(unavailable))
    assert load(deployment.adapters) == ""
    deployment.settle()
    assert load(deployment.adapters) == ""


def test_the_words_fit_the_numbers() -> None:
    """One file, many files and an unknown number have their own words."""
    assert waits(QUEUED, files_waiting(0)) == "waits for a shared run"
    words = "waits for a shared run; about 1 file waits or is in work"
    assert waits(QUEUED, files_waiting(1)) == words
    assert files_waiting(1_200) == "about 1,200 files wait or are in work"


def test_only_what_waits_is_called_queued() -> None:
    """A state has a note only as long as the ingestion waits for a shared run."""
    assert state(QUEUED) == "landed (queued)"
    assert state(replace(QUEUED, state=State.AUDITED)) == "audited"
    assert state(replace(QUEUED, is_shared=False)) == "landed"


@pytest.mark.parametrize(("members", "words"), [(0, ""), (2, "1 other file"), (4, "3 other files")])
def test_the_files_of_one_merge_are_counted(members: int, words: str) -> None:
    """A published file names how many others its merge published; a failed one names none."""
    together = replace(PUBLISHED, group=tuple(map(str, range(members))))
    assert published_together(together) == (f"with {words}" if words else "")
    assert published_together(replace(together, state=State.REJECTED)) == ""


def test_a_shared_run_is_marked() -> None:
    """A job run that others may share is marked; an unknown one is not invented."""
    assert job_run(PUBLISHED) == "00run"
    assert job_run(replace(PUBLISHED, is_shared=True)) == "00run (shared)"
    assert job_run(QUEUED) == ""
