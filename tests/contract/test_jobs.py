"""Job runs behave alike in memory and on EMR Serverless, which is the local stand-in."""

import shlex
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.stub import Stubber

from functions.adapters.emr import Jobs, RunState, UnknownRun
from functions.adapters.emr_run_policy import run_policy, shared_run_policy, widened
from functions.adapters.spark_submit import monitoring, spark_submit
from functions.model.budget import Use
from functions.settings import Settings
from lakegate import times
from lakegate.errors import Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import run_name
from lakegate.job.shared_run import SharedRun
from tests.contract.aws import ACCOUNT
from tests.contract.emr_service import Service
from tests.fakes import wire
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import SETTINGS
from tests.fakes.jobs import FakeJobs
from tests.unit.adapters.test_emr_run_policy import SHARED
from tests.unit.lakegate.test_jobspec import SPEC
from tests.waiting import eventually

DRIVER = Path(__file__).with_name("job_driver.py")
OWN, SHARED_ID = "00lakegatelocal1", "00shared"
LOCAL = replace(SETTINGS, emr_application_id=OWN, job_timeout_minutes=10_080)

BILLED = {
    "billedResourceUtilization": {"vCPUHour": 0.5, "memoryGBHour": 2.0, "storageGBHour": 0.25},
    "totalResourceUtilization": {"vCPUHour": 0.1, "memoryGBHour": 0.4, "storageGBHour": 9.0},
}


@dataclass(frozen=True)
class Application:
    """The adapter, a function that ends a run, and the folder of the runs' exit codes.

    The runs of `hasty` may take one minute, which is half a second.
    """

    jobs: Jobs | FakeJobs
    hasty: Jobs | FakeJobs
    end: Callable[[str, RunState], object]
    folder: Path
    now: Callable[[], datetime]

    def spec(self, attempt: int = 1, **changes: Any) -> JobSpec:
        """Return a new ingestion's job spec."""
        own = {"ingestion": uuid.uuid4().hex, "lake_bucket": str(self.folder), **changes}
        return replace(SPEC, attempt=attempt, **own)

    def shared(self, **changes: Any) -> SharedRun:
        """Return a new shared run."""
        own = {"name": f"shared-{uuid.uuid4().hex}", "lake_bucket": str(self.folder)}
        return replace(SHARED, **{**own, "timeout_minutes": 10_080, **changes})

    def ended(self, run: str, state: RunState) -> str:
        """End a run, wait for its state, and return its details."""
        self.end(run, state)
        eventually(lambda: self.jobs.get(run).state.terminal)
        assert self.jobs.get(run).state is state
        return self.jobs.get(run).details


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield boto3's client for the stand-in, which runs the driver above."""
    service = Service(tmp_path_factory.mktemp("emr"), wire.nobody())
    driver = shlex.join([sys.executable, str(DRIVER)])
    flags = {"minute-seconds": 0.5, "shared-application-id": SHARED_ID}
    yield service.start(driver=driver, drivers=2, **flags).client_with_tries(5)
    service.stop()


@pytest.fixture(params=["in memory", "EMR Serverless"])
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Application]:
    """Yield an application without runs of this test."""
    if request.param == "in memory":
        clock = FakeClock()
        fake = FakeJobs(clock)
        details = {RunState.FAILED: "ExitCode: 1.", RunState.CANCELLED: "Job run timed out."}
        yield Application(
            fake,
            fake,
            lambda run, s: fake.end(run, s, details.get(s, "")),
            tmp_path,
            lambda: datetime.fromisoformat(clock.now()),
        )
        return
    client = request.getfixturevalue("client")
    (tmp_path / "spark-avro.jar").touch()
    (tmp_path / "libraries.zip").touch()
    settings = replace(LOCAL, job_code=str(tmp_path))
    jobs = Jobs(client, settings)
    yield Application(
        jobs,
        Jobs(client, replace(settings, job_timeout_minutes=1)),
        lambda run, state: _end(jobs, tmp_path, run, state),
        tmp_path,
        lambda: datetime.now(UTC),
    )


def _end(jobs: Jobs, folder: Path, run: str, state: RunState) -> None:
    exit_codes = {RunState.SUCCESS: "0", RunState.FAILED: "1"}
    if state in exit_codes:  # a hasty run is cancelled by its time-out
        (folder / jobs.get(run).name).write_text(exit_codes[state])


def _described(**more: Any) -> dict[str, Any]:
    """Return a job run as EMR Serverless describes it."""
    account = "us-east-1:000000000000"
    return {
        "applicationId": "00application",
        "arn": f"arn:aws:emr-serverless:{account}:/applications/00application/jobruns/00run",
        "createdBy": "arn:aws:iam::000000000000:user/other",
        "createdAt": datetime.now(UTC),
        "updatedAt": datetime.now(UTC),
        "executionRole": SETTINGS.emr_role_arn,
        "state": "SUCCESS",
        "stateDetails": "Done.",
        "releaseLabel": "emr-spark-8.1.0",
        **more,
    }


def test_a_run_is_known_by_its_name(application: Application) -> None:
    """A started run is found by its id, has not ended, and is named after ingestion and attempt."""
    spec = application.spec()
    run = application.jobs.start(spec)
    found = application.jobs.get(run)
    assert found.id == run
    assert found.name == run_name(spec.ingestion, 1)
    assert not found.state.terminal
    application.ended(run, RunState.SUCCESS)


def test_an_attempt_has_one_run(application: Application) -> None:
    """Starting an attempt again returns its run, while it runs and after its end."""
    spec = application.spec()
    run = application.jobs.start(spec)
    assert application.jobs.start(spec) == run
    application.ended(run, RunState.FAILED)
    assert application.jobs.start(spec) == run
    assert application.jobs.get(run).state is RunState.FAILED


def test_another_attempt_is_another_run(application: Application) -> None:
    """The next attempt, and another ingestion, each get a separate run."""
    spec = application.spec()
    runs = [
        application.jobs.start(each)
        for each in (spec, replace(spec, attempt=2), application.spec())
    ]
    assert len(set(runs)) == 3
    for run in runs:
        application.ended(run, RunState.SUCCESS)


def test_an_attempt_cannot_become_another(application: Application) -> None:
    """Starting an attempt with another spec, as after a deployment, is an error."""
    spec = application.spec()
    run = application.jobs.start(spec)
    with pytest.raises(Transient, match="JOBS_UNAVAILABLE"):
        application.jobs.start(replace(spec, contract_version="c2"))
    application.ended(run, RunState.SUCCESS)


@pytest.mark.parametrize(
    ("state", "details"),
    [
        (RunState.SUCCESS, ""),
        (RunState.FAILED, "ExitCode: 1."),
        (RunState.CANCELLED, "timed out"),
    ],
)
def test_an_end_is_known(application: Application, state: RunState, details: str) -> None:
    """A run's state shows how it ended, with EMR's details of a failure."""
    jobs = application.hasty if state is RunState.CANCELLED else application.jobs
    run = jobs.start(application.spec())
    assert details in application.ended(run, state)


@pytest.mark.parametrize(
    ("shown", "use"),
    [
        (BILLED, Use(0.5, 2.0, 0.25)),
        ({"billedResourceUtilization": {"vCPUHour": 0.0, "memoryGBHour": 0.0}}, None),
        ({}, None),
        ({"startedAt": None}, Use()),
    ],
    ids=["billed", "told as nothing", "not told yet", "never executed"],
)
def test_what_a_run_used_is_what_was_billed(shown: dict[str, Any], use: Use | None) -> None:
    """The bill counts, which follows the end; a run that never executed costs nothing."""
    client = boto3.client("emr-serverless", **ACCOUNT)
    started = {"startedAt": datetime.now(UTC), **shown}
    found = {name: value for name, value in started.items() if value is not None}
    run = _described(jobRunId="00run", jobDriver={"hive": {"query": "SELECT 1"}}, **found)
    with Stubber(client) as stubber:
        stubber.add_response("get_job_run", {"jobRun": run})
        assert Jobs(client, SETTINGS).get("00run").use == use


def test_a_run_that_ended_has_a_bill(application: Application) -> None:
    """A small run is billed for a minute of its two workers at least."""
    run = application.jobs.start(application.spec(small=True))
    application.ended(run, RunState.SUCCESS)
    found = application.jobs.get(run).use
    assert found
    assert found.vcpu_hours > 0.033


def test_an_unknown_run_is_unknown(application: Application) -> None:
    """A run that was never started raises UnknownRun."""
    with pytest.raises(UnknownRun, match="00unknown"):
        application.jobs.get("00unknown")


def test_every_run_is_listed(application: Application) -> None:
    """Each run is listed once, with its name and state."""
    good, bad = application.spec(), application.spec()
    runs = [application.jobs.start(spec) for spec in (good, bad)]
    application.ended(runs[0], RunState.SUCCESS)
    application.ended(runs[1], RunState.FAILED)
    listed = {run.name: run for run in application.jobs.runs() if run.id in runs}
    assert len(listed) == 2
    assert listed[run_name(good.ingestion, 1)] == application.jobs.get(runs[0])
    assert listed[run_name(bad.ingestion, 1)] == application.jobs.get(runs[1])


@pytest.mark.parametrize(
    ("shared", "listed"), [("00shared", ["00a", "00b", "00c"]), ("00application", ["00a", "00b"])]
)
def test_runs_are_listed_page_by_page(shared: str, listed: list[str]) -> None:
    """All pages of each application are listed once, also if both settings name the same one."""
    client = boto3.client("emr-serverless", **ACCOUNT)
    asked = {"applicationId": "00application", "maxResults": 50}
    pages: list[list[dict[str, Any]]] = [[_described(id="00a")], [], [_described(id="00b")]]
    with Stubber(client) as stubber:
        for number, page in enumerate(pages):
            token = {"nextToken": f"t{number}"} if number < 2 else {}
            before = {"nextToken": f"t{number - 1}"} if number else {}
            stubber.add_response("list_job_runs", {"jobRuns": page, **token}, {**asked, **before})
        other = {"jobRuns": [_described(id="00c")]}
        stubber.add_response("list_job_runs", other, {**asked, "applicationId": "00shared"})
        settings = replace(SETTINGS, emr_shared_application_id=shared)
        assert [run.id for run in Jobs(client, settings).runs()] == listed


def test_a_shared_run_is_in_the_application_of_shared_runs(client: Any, tmp_path: Path) -> None:
    """Each kind of run starts in its application, and both are found and listed."""
    (tmp_path / "spark-avro.jar").touch()
    (tmp_path / "libraries.zip").touch()
    jobs = Jobs(client, replace(LOCAL, job_code=str(tmp_path)))
    spec = replace(SPEC, ingestion=uuid.uuid4().hex, lake_bucket=str(tmp_path))
    shared = replace(SHARED, name=f"shared-{uuid.uuid4().hex}", lake_bucket=str(tmp_path))
    started = {OWN: jobs.start(spec), SHARED_ID: jobs.start(shared)}
    for application, run in started.items():
        assert jobs.describe(run)["applicationId"] == application
        _end(jobs, tmp_path, run, RunState.SUCCESS)
    assert set(started.values()) <= {run.id for run in jobs.runs()}


def test_runs_are_listed_from_a_time_on(application: Application) -> None:
    """Only runs created since a time are listed."""
    run = application.jobs.start(application.spec())
    hour = timedelta(hours=1)
    since = times.text(application.now() - hour)
    assert run in {listed.id for listed in application.jobs.runs(since)}
    assert list(application.jobs.runs(times.text(application.now() + hour))) == []
    application.ended(run, RunState.SUCCESS)


def test_a_run_keeps_its_spec(application: Application) -> None:
    """A run's spec can be read, also after its end."""
    spec = application.spec(attempt=2)
    run = application.jobs.start(spec)
    application.ended(run, RunState.FAILED)
    assert application.jobs.spec(run) == spec
    with pytest.raises(UnknownRun, match="00unknown"):
        application.jobs.spec("00unknown")


@pytest.mark.parametrize(
    "driver",
    [
        {"hive": {"query": "SELECT 1"}},
        {"sparkSubmit": {"entryPoint": "s3://lake/other.py"}},
        {"sparkSubmit": {"entryPoint": "s3://lake/other.py", "entryPointArguments": ["--all"]}},
        {"sparkSubmit": {"entryPoint": "s3://lake/other.py", "entryPointArguments": ["{}", "{}"]}},
        {"sparkSubmit": {"entryPoint": "s3://lake/other.py", "entryPointArguments": ["{}"]}},
    ],
)
def test_a_foreign_run_has_no_spec(driver: dict[str, Any]) -> None:
    """A run that is not one of ours has no spec."""
    client = boto3.client("emr-serverless", **ACCOUNT)
    run = _described(jobRunId="00run", jobDriver=driver)
    with Stubber(client) as stubber:
        stubber.add_response("get_job_run", {"jobRun": run})
        with pytest.raises(Permanent, match="BAD_JOB_SPEC"):
            Jobs(client, SETTINGS).spec("00run")


def test_a_shared_run_is_known_by_its_name(application: Application) -> None:
    """A shared run is found by its id and listed by its name, and has no attempt's spec."""
    shared = application.shared()
    run = application.jobs.start(shared)
    assert application.jobs.get(run).name == shared.name
    assert run in {listed.id for listed in application.jobs.runs() if listed.name == shared.name}
    with pytest.raises(Permanent, match="BAD_JOB_SPEC"):
        application.jobs.spec(run)
    application.ended(run, RunState.SUCCESS)


def test_a_shared_run_is_started_once(application: Application) -> None:
    """Starting a shared run again returns the first one; with another input it is an error."""
    shared = application.shared()
    run = application.jobs.start(shared)
    assert application.jobs.start(shared) == run
    with pytest.raises(Transient, match="JOBS_UNAVAILABLE"):
        application.jobs.start(replace(shared, idle_seconds=1))
    another = application.jobs.start(application.shared())
    assert another != run
    for each in (run, another):
        application.ended(each, RunState.SUCCESS)


def test_a_shared_run_has_its_own_time_limit(application: Application) -> None:
    """A shared run is stopped after its own time limit, whatever the settings say."""
    run = application.jobs.start(application.shared(timeout_minutes=1))
    assert "timed out" in application.ended(run, RunState.CANCELLED)


def test_a_shared_run_is_told_what_its_policy_denies() -> None:
    """A run whose policy cannot name all tables gets the wider patterns that the policy names."""
    client = Mock()
    client.start_job_run.return_value = {"jobRunId": "run"}
    many = replace(SHARED, apart=tuple(f"hr.t{number}" for number in range(50)))
    Jobs(client, SETTINGS).start(widened(many, SETTINGS))
    given = client.start_job_run.call_args.kwargs
    (argument,) = given["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    told = SharedRun.from_argument(argument)
    assert told
    assert told == replace(many, apart=("hr.*",))
    assert given["executionIamPolicy"] == {"policy": shared_run_policy(told, SETTINGS)}


def test_a_shared_run_asks_for_its_rights_and_size() -> None:
    """The request has the shared run's name, argument, rights, size, time limit and tag."""
    settings = replace(SETTINGS, job_log_group="/lakegate/test/jobs")
    submitted = spark_submit(SHARED, settings)
    assert SharedRun.from_argument(*submitted["entryPointArguments"]) == SHARED
    asked = {
        "clientToken": SHARED.name,
        "name": SHARED.name,
        "executionIamPolicy": {"policy": shared_run_policy(SHARED, settings)},
        "jobDriver": {"sparkSubmit": submitted},
        "executionTimeoutMinutes": SHARED.timeout_minutes,
        "tags": {"lakegate:shared": "yes"},
    }
    assert _started(settings, asked, lambda jobs: jobs.start(SHARED), "00shared") == "00run"


def test_a_start_asks_for_what_the_settings_say() -> None:
    """The request has code, argument, rights, log, attempts, time limit and token."""
    settings = replace(SETTINGS, job_log_group="/lakegate/test/jobs")
    spec, name = SPEC, f"{SPEC.ingestion}-2"
    asked = {
        "clientToken": name,
        "name": name,
        "executionIamPolicy": {"policy": run_policy(spec, settings)},
        "jobDriver": {"sparkSubmit": spark_submit(spec, settings)},
        "executionTimeoutMinutes": 60,
        "tags": {"lakegate:table": SPEC.table},
    }
    assert _started(settings, asked, lambda jobs: jobs.start(spec)) == "00run"


def _started(
    settings: Settings,
    asked: dict[str, Any],
    start: Callable[[Jobs], str],
    application: str = "00application",
) -> str:
    """Return the run that a start gave, which must request this and what all runs have."""
    client = boto3.client("emr-serverless", **ACCOUNT)
    expected = {
        "applicationId": application,
        "executionRoleArn": SETTINGS.emr_role_arn,
        "configurationOverrides": {"monitoringConfiguration": monitoring(settings)},
        "retryPolicy": {"maxAttempts": 1},
        **asked,
    }
    with Stubber(client) as stubber:
        arn = "arn:aws:emr-serverless:us-east-1:000000000000:/applications/00application/jobruns/1"
        answer = {"applicationId": "00application", "jobRunId": "00run", "arn": arn}
        stubber.add_response("start_job_run", answer, expected)
        run = start(Jobs(client, settings))
        stubber.assert_no_pending_responses()
    return run
