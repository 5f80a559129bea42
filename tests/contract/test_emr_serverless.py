"""The local EMR Serverless behaves as boto3 and EventBridge expect. Its drivers run no Spark."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from moto.server import ThreadedMotoServer

from tests.contract.aws import ACCOUNT
from tests.contract.emr_service import APPLICATION, LIFE, ROLE, EventBus, Service, start_request
from tests.fakes import wire
from tests.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory, bus: EventBus) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("emr"), bus.url).start()
    yield service
    service.stop()


@pytest.fixture
def service(shared_service: Service) -> Iterator[Service]:
    """Yield the service that most tests share; each leaves it idle and without faults."""
    yield shared_service
    shared_service.control()
    eventually(shared_service.is_idle)


class TestARun:
    def test_goes_through_the_states_to_success(self, service: Service, bus: EventBus) -> None:
        """Each state of a run that succeeds is one event, with the documented detail."""
        run_id = service.run("succeed")
        run = service.wait_for(run_id, "SUCCESS")
        eventually(lambda: bus.states(run_id) == [*LIFE, "SUCCESS"])
        last = bus.received[-1]
        assert last["Source"] == "aws.emr-serverless"
        assert last["DetailType"] == "EMR Serverless Job Run State Change"
        times = {name: last["Detail"].pop(name) for name in ("createdAt", "updatedAt")}
        assert last["Detail"] == {
            "jobRunId": run_id,
            "applicationId": APPLICATION,
            "arn": run["arn"],
            "releaseLabel": run["releaseLabel"],
            "createdBy": run["createdBy"],
            "state": "SUCCESS",
            "previousState": "RUNNING",
        }
        assert times["createdAt"] < times["updatedAt"]

    def test_is_described_as_it_was_started(self, service: Service) -> None:
        """GetJobRun returns the parameters of StartJobRun, with the documented defaults."""
        run_id = service.run("succeed", name="ingest-1", tags={"table": "flights"})
        run = service.wait_for(run_id, "SUCCESS")
        assert (run["jobRunId"], run["name"], run["mode"]) == (run_id, "ingest-1", "BATCH")
        assert run["tags"] == {"table": "flights"}
        assert run["executionRole"] == ROLE
        assert run["jobDriver"]["sparkSubmit"]["entryPointArguments"] == ["succeed"]
        assert (run["attempt"], run["executionTimeoutMinutes"]) == (1, 720)
        assert run["createdAt"] <= run["startedAt"] <= run["endedAt"]

    def test_reports_why_it_failed(self, service: Service) -> None:
        """A failed run's details have exit code and error in at most 256 characters."""
        run = service.wait_for(service.run("fail"), "FAILED", "SUCCESS")
        assert run["state"] == "FAILED"
        assert "ExitCode: 1" in run["stateDetails"]
        assert "ValueError: told to fail" in run["stateDetails"]
        assert len(run["stateDetails"]) == 256

    @pytest.mark.parametrize(
        ("what", "state", "details"),
        [
            ("die", "FAILED", "driver died"),
            ("lose", "FAILED", "JVM was killed"),
            ("leave", "SUCCESS", ""),
        ],
    )
    def test_leaves_a_bad_driver_to_no_other_run(
        self, service: Service, what: str, state: str, details: str
    ) -> None:
        """After a driver died, lost its JVM or kept a task, the next run has another driver."""
        bad, good = service.run(what), service.run("succeed")
        assert details in service.wait_for(bad, "FAILED", "SUCCESS").get("stateDetails", "")
        assert service.get(bad)["state"] == state
        service.wait_for(good, "SUCCESS")
        assert service.order(bad)["pid"] != service.order(good)["pid"]

    def test_finds_the_driver_of_the_run_before_it(self, service: Service) -> None:
        """Runs that end normally, with success or failure, share one warm driver."""
        runs = [service.run(what) for what in ("succeed", "fail", "succeed")]
        service.wait_for(runs[-1], "SUCCESS")
        assert len({service.order(run)["pid"] for run in runs}) == 1

    def test_has_spark_submits_parameters(self, service: Service, tmp_path: Path) -> None:
        """The driver gets spark-submit's settings and files, without its size."""
        parameters = (
            f"--conf spark.a=1 --conf 'spark.b=x y' --py-files {tmp_path}/a.zip,{tmp_path}/b.py"
            " --conf spark.executor.memory=2g --conf spark.executor.cores=4"
            f" --conf spark.archives={tmp_path}/c.zip#c --conf spark.executorEnv.PYTHONPATH=./c"
            " --conf spark.emr-serverless.driverEnv.PYTHONPATH=./c"
        )
        (tmp_path / "c.zip").touch()
        run_id = service.run_with(parameters)
        service.wait_for(run_id, "SUCCESS")
        order = service.order(run_id)
        assert order["conf"] == {"spark.a": "1", "spark.b": "x y"}
        assert order["py_files"] == [f"{tmp_path}/a.zip", f"{tmp_path}/b.py"]

    @pytest.mark.parametrize(
        ("parameters", "bytes_"),
        [
            ("--conf spark.driver.memory=2g --conf spark.driver.memoryOverhead=2g", 2 << 30),
            ("--conf spark.driver.memory=20g", 2 << 30),
            ("--conf spark.driver.memory=1g", 384 << 20),
            ("--conf spark.a=1", (14 << 30) // 10),
        ],
    )
    def test_has_memory_beside_the_jvm(
        self, service: Service, parameters: str, bytes_: int
    ) -> None:
        """A run's own process has the memory that is asked for, else a tenth of the JVM's."""
        run_id = service.run_with(parameters)
        service.wait_for(run_id, "SUCCESS")
        assert service.order(run_id)["beside"] == bytes_

    def test_has_no_variables_but_those_that_it_names(self, service: Service) -> None:
        """A run gets its credentials and what its submission names, and nothing of the service's.

        The service itself has a region and the owner's credentials in its environment.
        """
        places = ("spark.emr-serverless.driverEnv", "spark.executorEnv")
        given = " ".join(f"--conf {place}.AWS_REGION=eu-west-1" for place in places)
        named, bare = service.run_with(given), service.run("succeed")
        for run_id in (named, bare):
            service.wait_for(run_id, "SUCCESS")
            known = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "JDK_JAVA_OPTIONS"}
            known |= {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "LAKEGATE_PART"}
            assert set(service.order(run_id)["variables"]) <= known
        credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        for worker in ("environment", "executor_environment"):
            assert service.order(bare)[worker] == credentials
            assert service.order(named)[worker] == {"AWS_REGION": "eu-west-1", **credentials}

    @pytest.mark.parametrize(
        ("parameters", "reason"),
        [
            ("--class Main", "sparkSubmitParameters"),
            ("--conf novalue", "sparkSubmitParameters"),
            ("--conf 'open", "sparkSubmitParameters"),
            ("--conf spark.jars=/usr/share/aws/iceberg/lib/iceberg.jar", "iceberg.jar"),
            ("--conf spark.archives=/opt/none.zip#libraries", "none.zip"),
        ],
    )
    def test_fails_on_wrong_parameters(
        self, service: Service, parameters: str, reason: str
    ) -> None:
        """Unsupported parameters, missing jars and missing archives fail the run."""
        run = service.wait_for(service.run_with(parameters), "FAILED", "SUCCESS")
        assert reason in run["stateDetails"]


class TestStarting:
    def test_twice_with_one_token_starts_one_run(self, own_service: Service) -> None:
        """A client token always returns the same run; with other parameters it is a conflict."""
        service = own_service.start()
        request = start_request("succeed")
        answers = [service.client.start_job_run(**request) for _ in range(3)]
        assert len({answer["jobRunId"] for answer in answers}) == 1
        assert service.runs() == [answers[0]["jobRunId"]]
        with pytest.raises(service.client.exceptions.ConflictException):
            service.client.start_job_run(**{**request, "name": "another"})

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            ({"clientToken": "a" * 65}, "clientToken"),
            ({"executionRoleArn": "me"}, "executionRoleArn"),
            ({"executionIamPolicy": {"policy": "[]"}}, "ValidationException"),
            ({"executionIamPolicy": {"policy": "x" * 2049}}, "ValidationException"),
            ({"tags": {"table": "ä"}}, "tags"),
            ({"mode": "STREAMING"}, "mode"),
            ({"retryPolicy": {"maxAttempts": 2}}, "maxAttempts"),
            ({"executionTimeoutMinutes": 0}, "executionTimeoutMinutes"),
            ({"jobDriver": {"hive": {"query": "select 1"}}}, "jobDriver"),
            ({"jobDriver": {"sparkSubmit": {}}}, "entryPoint"),
        ],
    )
    def test_with_a_wrong_request_is_refused(
        self, service: Service, wrong: dict[str, Any], reason: str
    ) -> None:
        """A request that the service model or the documentation forbids is a validation error."""
        with pytest.raises(service.client.exceptions.ValidationException, match=reason):
            service.client.start_job_run(**{**start_request("succeed"), **wrong})

    def test_can_fail_on_demand(self, own_service: Service) -> None:
        """A start fails with the chosen error and starts nothing; the next one works."""
        service = own_service.start()
        service.control(fail_next_starts=1, fail_with="ServiceQuotaExceededException")
        with pytest.raises(service.client.exceptions.ServiceQuotaExceededException):
            service.run("succeed")
        assert not service.runs()
        service.run("succeed")

    def test_too_fast_is_refused(self, own_service: Service) -> None:
        """The service takes a burst of calls, here of none; tests/contract/test_job_limits.py."""
        service = own_service.start(burst=0)
        with pytest.raises(service.client.exceptions.ClientError, match="ThrottlingException"):
            service.run("succeed")

    def test_finds_a_run_whose_answer_was_lost(self, own_service: Service) -> None:
        """A start whose answer is lost did start a run, which boto3's retry finds."""
        service = own_service.start()
        request = start_request("succeed")
        service.control(lose_next_answers=2)
        with pytest.raises(service.client.exceptions.InternalServerException):
            service.client.start_job_run(**request)
        run_id = service.client_with_tries(2).start_job_run(**request)["jobRunId"]
        assert service.runs() == [run_id]


class TestLookingUp:
    @pytest.mark.parametrize(
        ("application", "run"), [(APPLICATION, "0nope"), ("0other", "0nope")], ids=["run", "app"]
    )
    def test_finds_nothing_unknown(self, service: Service, application: str, run: str) -> None:
        """An unknown run or application is a ResourceNotFoundException."""
        with pytest.raises(service.client.exceptions.ResourceNotFoundException):
            service.client.get_job_run(applicationId=application, jobRunId=run)

    def test_shows_the_applications_limits(self, own_service: Service) -> None:
        """GetApplication shows how many runs may run and how long one may wait."""
        service = own_service.start(drivers=3, **{"queue-timeout-minutes": 15})
        application = service.client.get_application(applicationId=APPLICATION)["application"]
        limits = {"maxConcurrentRuns": 3, "queueTimeoutMinutes": 15}
        assert application["schedulerConfiguration"] == limits

    def test_runs_are_listed_newest_first_page_by_page(self, own_service: Service) -> None:
        """Every run is on exactly one page, even if runs start between two pages."""
        service = own_service.start()
        started = [service.run("succeed") for _ in range(5)]
        first = service.client.list_job_runs(applicationId=APPLICATION, maxResults=2)
        service.run("succeed")
        rest = service.client.list_job_runs(
            applicationId=APPLICATION, maxResults=50, nextToken=first["nextToken"]
        )
        listed = [run["id"] for page in (first, rest) for run in page["jobRuns"]]
        assert listed == started[::-1]
        assert "nextToken" not in rest

    def test_runs_are_listed_from_a_time_on(self, own_service: Service) -> None:
        """A list can be limited to runs created since a time; other limits are refused."""
        service = own_service.start()
        _, last = service.run("succeed"), service.run("succeed")
        limit = {"createdAtAfter": service.get(last)["createdAt"]}
        answer = service.client.list_job_runs(applicationId=APPLICATION, **limit)
        assert [run["id"] for run in answer["jobRuns"]] == [last]
        with pytest.raises(service.client.exceptions.ValidationException, match="states"):
            service.client.list_job_runs(applicationId=APPLICATION, states=["FAILED"])


class TestQueueing:
    def test_lets_runs_wait_for_a_driver(self, service: Service, tmp_path: Path) -> None:
        """A run without a free driver is QUEUED and runs later, in order."""
        mark = tmp_path / "go"
        first = service.run("wait", str(mark))
        service.wait_for(first, "RUNNING")
        waiting = [service.run("succeed"), service.run("succeed")]
        assert [service.get(run)["state"] for run in waiting] == ["QUEUED", "QUEUED"]
        mark.touch()
        second, third = (service.wait_for(run, "SUCCESS") for run in waiting)
        assert second["endedAt"] <= third["startedAt"]
        assert third["queuedDurationMilliseconds"] > 0

    def test_runs_as_many_at_a_time_as_there_are_drivers(self, own_service: Service) -> None:
        """Two drivers run two runs at a time; the third is QUEUED."""
        service = own_service.start(drivers=2)
        runs = [service.run("hang") for _ in range(3)]
        for run in runs[:2]:
            service.wait_for(run, "RUNNING")
        assert service.get(runs[2])["state"] == "QUEUED"

    def test_waits_for_a_driver_that_is_soon_free(
        self, own_service: Service, tmp_path: Path
    ) -> None:
        """A run that starts shortly before another's end gets its driver."""
        service = own_service.start("--prewarm", drivers=2, **{"patience-seconds": PATIENCE})
        (first,) = service.drivers()
        service.wait_for(service.run("wait", str(tmp_path / "go")), "RUNNING")
        second = service.run("succeed")
        (tmp_path / "go").touch()
        service.wait_for(second, "SUCCESS")
        assert service.drivers() == [first]

    def test_starts_another_driver_for_a_run_that_waits(self, own_service: Service) -> None:
        """A second driver starts if the first one is busy for too long."""
        service = own_service.start("--prewarm", drivers=2, **{"patience-seconds": 0.5})
        assert len(service.drivers()) == 1
        service.wait_for(service.run("hang"), "RUNNING")
        service.wait_for(service.run("succeed"), "SUCCESS")
        assert len(service.drivers()) == 2

    def test_ends_a_second_driver_that_is_idle(self, own_service: Service) -> None:
        """A driver beyond the first ends after the idle time; the first one stays."""
        flags = {"drivers": 2, "minute-seconds": 0.5, "idle-minutes": 1}
        service = own_service.start("--prewarm", **flags)
        (first,) = service.drivers()
        service.wait_for(service.run("hang"), "RUNNING")
        service.wait_for(service.run("succeed"), "SUCCESS")
        eventually(lambda: service.drivers() == [first])

    def test_ends_after_the_queues_time_out(self, own_service: Service, bus: EventBus) -> None:
        """A run that is QUEUED for too long is CANCELLED and never runs."""
        service = own_service.start(**{"queue-timeout-minutes": 1, "minute-seconds": 0.3})
        service.run("hang", executionTimeoutMinutes=10_000)
        waiting = service.run("succeed")
        assert "QUEUED" in service.wait_for(waiting, "CANCELLED")["stateDetails"]
        eventually(lambda: len(bus.states(waiting)) == 4)
        assert bus.states(waiting) == ["SUBMITTED", "QUEUED", "CANCELLING", "CANCELLED"]


class TestATimeOut:
    @pytest.mark.parametrize("what", ["hang", "ignore"])
    def test_ends_a_run_and_its_driver(
        self, own_service: Service, bus: EventBus, what: str
    ) -> None:
        """A run that takes too long is CANCELLED after its driver ended, and the next one runs."""
        service = own_service.start(**{"minute-seconds": 0.5})
        run_id = service.run(what, executionTimeoutMinutes=1)
        run = service.wait_for(run_id, "CANCELLED")
        assert "timed out after 1 minute" in run["stateDetails"]
        eventually(lambda: bus.states(run_id)[-2:] == ["CANCELLING", "CANCELLED"])
        # A slow machine ends it before it runs.
        assert [each for each in bus.states(run_id) if each not in LIFE[3:]] == [
            *LIFE[:3],
            "CANCELLING",
            "CANCELLED",
        ]
        service.wait_for(service.run("succeed"), "SUCCESS")
        with suppress(FileNotFoundError), pytest.raises(ProcessLookupError):
            os.kill(service.order(run_id)["pid"], 0)


class TestACrashOfTheService:
    def test_fails_the_run_that_was_on(self, own_service: Service) -> None:
        """A run that was RUNNING when the service was killed is FAILED, with the reason."""
        service = own_service.start()
        run_id = service.run("hang")
        driver = service.wait_for(run_id, "RUNNING") and service.order(run_id)["pid"]
        service.stop(signal.SIGKILL)
        service.start()
        assert "while the job run was RUNNING" in service.wait_for(run_id, "FAILED")["stateDetails"]
        eventually(lambda: not Path(f"/proc/{driver}").exists(), message="the driver lives on")

    def test_cancels_the_shared_run_that_waited_for_files(self, own_service: Service) -> None:
        """Whoever stops and starts a stack is not told that a shared run has failed."""
        switches = {"application-id": "00own", "shared-application-id": APPLICATION}
        service = own_service.start(**switches)
        run_id = service.run("hang")
        service.wait_for(run_id, "RUNNING")
        service.stop(signal.SIGTERM)
        service.start(**switches)
        assert "service died" in service.wait_for(run_id, "CANCELLED")["stateDetails"]

    def test_leaves_no_run_behind(self, own_service: Service) -> None:
        """A run that waited when the service was killed runs afterwards."""
        service = own_service.start()
        service.wait_for(service.run("hang"), "RUNNING")
        waiting = service.run("succeed")
        service.stop(signal.SIGKILL)
        service.start()
        service.wait_for(waiting, "SUCCESS")

    def test_keeps_client_tokens(self, own_service: Service) -> None:
        """A client token from before a kill still returns the run that it started."""
        service = own_service.start()
        request = start_request("succeed")
        run_id = service.client.start_job_run(**request)["jobRunId"]
        service.stop(signal.SIGKILL)
        service.start()
        assert service.client.start_job_run(**request)["jobRunId"] == run_id


class TestEvents:
    @pytest.mark.parametrize(
        ("faults", "states"),
        [
            ({"lose": 1, "states": ["SUCCESS"]}, LIFE),
            ({"double": 1, "states": ["SUCCESS"]}, [*LIFE, "SUCCESS", "SUCCESS"]),
        ],
        ids=["lost", "twice"],
    )
    def test_go_wrong_on_demand(
        self, service: Service, bus: EventBus, faults: dict[str, Any], states: list[str]
    ) -> None:
        """Events can be lost or come twice; the next run's are as usual."""
        service.control(events=faults)
        struck = service.run("succeed")
        service.wait_for(struck, "SUCCESS")
        next_ = service.run("succeed")
        eventually(lambda: bus.states(next_) == [*LIFE, "SUCCESS"])
        assert bus.states(struck) == states

    def test_are_lost_while_the_bus_is_away(self, tmp_path: Path) -> None:
        """Runs continue without a bus: delivery of their events is best effort."""
        service = Service(tmp_path / "emr", wire.nobody()).start()
        try:
            service.wait_for(service.run("succeed"), "SUCCESS")
        finally:
            service.stop()

    def test_have_no_unknown_faults(self, service: Service) -> None:
        """An unknown fault is refused by name."""
        wrong = {"events": {"eat": 1}}
        answer = requests.put(f"{service.url}/_control", json=wrong, timeout=PATIENCE)
        assert answer.status_code == 400
        assert "eat" in answer.json()["message"]


class TestArtefacts:
    @pytest.fixture
    def s3(self) -> Iterator[str]:
        server = ThreadedMotoServer("127.0.0.1", port=0)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()

    def run_from_s3(self, service: Service) -> str:
        submit = {"entryPoint": "s3://lake/main.py", "entryPointArguments": ["succeed"]}
        submit["sparkSubmitParameters"] = "--py-files s3://lake/job.zip"
        return service.run(jobDriver={"sparkSubmit": submit})

    def test_come_from_s3_by_content(self, tmp_path: Path, s3: str) -> None:
        """A run's files in S3 are downloaded into directories named by their content."""
        client = boto3.client("s3", endpoint_url=s3, **ACCOUNT)
        client.create_bucket(Bucket="lake")
        service = Service(tmp_path / "emr", s3).start()
        try:
            missing = service.wait_for(self.run_from_s3(service), "FAILED")["stateDetails"]
            assert "s3://lake/main.py cannot be read" in missing
            orders = []
            for text in ("one", "two"):
                client.put_object(Bucket="lake", Key="main.py", Body=text.encode())
                client.put_object(Bucket="lake", Key="job.zip", Body=b"zip")
                run_id = self.run_from_s3(service)
                service.wait_for(run_id, "SUCCESS")
                orders.append(service.order(run_id))
        finally:
            service.stop()
        assert [Path(order["entry_point"]).read_text() for order in orders] == ["one", "two"]
        assert orders[0]["py_files"] == orders[1]["py_files"]
        assert Path(orders[0]["py_files"][0]).name == "job.zip"
