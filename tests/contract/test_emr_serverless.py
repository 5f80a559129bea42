"""The local EMR Serverless behaves as boto3 and EventBridge expect. Its drivers run no Spark."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from botocore.config import Config
from flask import Flask, request
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server

from infra.local.parts import free_port
from tests.fakes import wire
from tests.waiting import PATIENCE, eventually

APPLICATION = "00lakegatelocal1"
ROLE = "arn:aws:iam::000000000000:role/job"
ACCOUNT = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}
FAKE_DRIVER = shlex.join([sys.executable, str(Path(__file__).with_name("fake_driver.py"))])
LIFE = ["SUBMITTED", "PENDING", "SCHEDULED", "RUNNING"]


class EventBus:
    """A stand-in for EventBridge's PutEvents that records the events."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        app = Flask("events")
        app.add_url_rule("/", "put", self._put, methods=["POST"])
        self._server = make_server("127.0.0.1", 0, app)
        self.url = f"http://127.0.0.1:{self._server.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _put(self) -> dict[str, Any]:
        entries = json.loads(request.get_data())["Entries"]
        self.received.extend({**entry, "Detail": json.loads(entry["Detail"])} for entry in entries)
        return {"FailedEntryCount": 0, "Entries": []}

    def states(self, run_id: str) -> list[str]:
        """Return the states of a run in the order of its events."""
        details = [event["Detail"] for event in self.received]
        return [d["state"] for d in details if d["jobRunId"] == run_id and "state" in d]

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class Service:
    """The stand-in in a process of its own, and boto3's client for it."""

    def __init__(self, home: Path, aws: str) -> None:
        self.home = home
        self._env = {**os.environ, "AWS_ENDPOINT_URL": aws, "AWS_ACCESS_KEY_ID": "test"}
        self._env |= {"AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
        self.port = free_port(set())
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = self.client_with_tries(1)

    def start(self, **flags: object) -> "Service":
        """Start it and wait until it answers."""
        given = {"driver": FAKE_DRIVER, "minute-seconds": 60, "grace-seconds": 0.2, **flags}
        command = [sys.executable, "-m", "infra.local.emr", "--port", str(self.port)]
        command += ["--home", str(self.home), *(f"--{name}={given[name]}" for name in given)]
        self._process = subprocess.Popen(command, env=self._env)
        eventually(self._answers, message="the service does not answer")
        return self

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/_health", timeout=5).ok
        except requests.RequestException:
            return False

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End its process with this signal."""
        self._process.send_signal(how)
        self._process.wait()

    def client_with_tries(self, tries: int) -> Any:
        """Return boto3's client, which tries each call so often."""
        config = Config(retries={"total_max_attempts": tries}, parameter_validation=False)
        return boto3.client("emr-serverless", endpoint_url=self.url, config=config, **ACCOUNT)

    def control(self, **faults: object) -> None:
        """Set these faults."""
        requests.put(f"{self.url}/_control", json=faults, timeout=PATIENCE).raise_for_status()

    def run(self, *arguments: str, **more: Any) -> str:
        """Start a job run of the fake driver and return its id."""
        request = {**start_request(*arguments), **more}
        return self.client.start_job_run(**request)["jobRunId"]

    def run_with(self, parameters: str) -> str:
        """Start a job run that succeeds with these parameters and return its id."""
        submit = {"entryPoint": "/job.py", "entryPointArguments": ["succeed"]}
        return self.run(jobDriver={"sparkSubmit": {**submit, "sparkSubmitParameters": parameters}})

    def get(self, run_id: str) -> dict[str, Any]:
        """Return the job run as GetJobRun shows it."""
        return self.client.get_job_run(applicationId=APPLICATION, jobRunId=run_id)["jobRun"]

    def wait_for(self, run_id: str, *states: str) -> dict[str, Any]:
        """Return the job run once it is in one of these states."""
        eventually(lambda: self.get(run_id)["state"] in states, message=f"{run_id} is not {states}")
        return self.get(run_id)

    def runs(self) -> list[str]:
        """Return the ids of the runs that ListJobRuns shows."""
        answer = self.client.list_job_runs(applicationId=APPLICATION)
        return [run["id"] for run in answer["jobRuns"]]

    def is_idle(self) -> bool:
        """Return whether every run has ended."""
        health = requests.get(f"{self.url}/_health", timeout=PATIENCE).json()
        return health["runs"].keys() <= {"SUCCESS", "FAILED", "CANCELLED"}

    def order(self, run_id: str) -> dict[str, Any]:
        """Return the fake driver's order of the run."""
        return json.loads((self.home / "runs" / run_id / "stdout").read_text())


def start_request(*arguments: str) -> dict[str, Any]:
    """Return a StartJobRun request."""
    return {
        "applicationId": APPLICATION,
        "clientToken": os.urandom(8).hex(),
        "executionRoleArn": ROLE,
        "jobDriver": {
            "sparkSubmit": {"entryPoint": "/job.py", "entryPointArguments": list(arguments)}
        },
    }


@pytest.fixture(scope="module")
def bus() -> Iterator[EventBus]:
    bus = EventBus()
    yield bus
    bus.stop()


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


@pytest.fixture
def own_service(tmp_path: Path, bus: EventBus) -> Iterator[Service]:
    """Yield a service that only this test uses and starts."""
    service = Service(tmp_path / "emr", bus.url)
    yield service
    service.stop()


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

    def test_that_fails_says_why(self, service: Service) -> None:
        """A failed run's details have exit code and error in at most 256 characters."""
        run = service.wait_for(service.run("fail"), "FAILED", "SUCCESS")
        assert run["state"] == "FAILED"
        assert "ExitCode: 1" in run["stateDetails"]
        assert "ValueError: told to fail" in run["stateDetails"]
        assert len(run["stateDetails"]) == 256

    def test_whose_driver_dies_fails_and_the_next_one_runs(self, service: Service) -> None:
        """A driver's death fails its run alone, and the details say so."""
        dead = service.run("die")
        alive = service.run("succeed")
        assert "driver died" in service.wait_for(dead, "FAILED")["stateDetails"]
        service.wait_for(alive, "SUCCESS")
        assert service.order(dead)["pid"] != service.order(alive)["pid"]

    def test_that_is_lost_leaves_its_driver(self, service: Service) -> None:
        """A driver that reports a lost run gets no other, even if its process lives."""
        lost, alive = service.run("lose"), service.run("succeed")
        assert "JVM was killed" in service.wait_for(lost, "FAILED")["stateDetails"]
        service.wait_for(alive, "SUCCESS")

    def test_that_leaves_tasks_behind_ends_with_its_driver(self, service: Service) -> None:
        """A run that leaves a task is SUCCESS, and the next run has another driver."""
        leaving, alive = service.run("leave"), service.run("succeed")
        service.wait_for(leaving, "SUCCESS")
        service.wait_for(alive, "SUCCESS")
        assert service.order(leaving)["pid"] != service.order(alive)["pid"]

    def test_finds_the_driver_of_the_run_before_it(self, service: Service) -> None:
        """Runs that end normally, with success or failure, share one warm driver."""
        runs = [service.run(what) for what in ("succeed", "fail", "succeed")]
        service.wait_for(runs[-1], "SUCCESS")
        assert len({service.order(run)["pid"] for run in runs}) == 1

    def test_has_spark_submits_parameters(self, service: Service, tmp_path: Path) -> None:
        """The driver gets spark-submit's settings and files, without its size."""
        parameters = (
            f"--conf spark.a=1 --conf 'spark.b=x y' --py-files {tmp_path}/a.zip,{tmp_path}/b.py"
            " --conf spark.executor.memory=2g --executor-cores 4"
        )
        run_id = service.run_with(parameters)
        service.wait_for(run_id, "SUCCESS")
        order = service.order(run_id)
        assert order["conf"] == {"spark.a": "1", "spark.b": "x y"}
        assert order["py_files"] == [f"{tmp_path}/a.zip", f"{tmp_path}/b.py"]

    @pytest.mark.parametrize("parameters", ["--class Main", "--conf novalue", "--conf 'open"])
    def test_fails_on_parameters_that_mean_nothing_here(
        self, service: Service, parameters: str
    ) -> None:
        """Unsupported parameters fail the run and are not ignored."""
        run = service.wait_for(service.run_with(parameters), "FAILED", "SUCCESS")
        assert "sparkSubmitParameters" in run["stateDetails"]

    @pytest.mark.parametrize(
        "parameters",
        ["--jars /opt/none.jar", "--conf spark.jars=/usr/share/aws/iceberg/lib/iceberg.jar"],
    )
    def test_fails_on_a_jar_that_is_not_there(self, service: Service, parameters: str) -> None:
        """A missing jar fails the run, and the details name it."""
        run = service.wait_for(service.run_with(parameters), "FAILED", "SUCCESS")
        assert parameters.rpartition("/")[2] in run["stateDetails"]

    def test_has_the_jars_of_its_release_label(self, service: Service) -> None:
        """The path of Iceberg's jar on EMR Serverless is accepted; the driver has its own."""
        parameters = "--conf spark.jars=/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
        run_id = service.run_with(parameters)
        service.wait_for(run_id, "SUCCESS")
        assert service.order(run_id)["conf"] == {}


class TestStarting:
    @pytest.mark.parametrize(
        "policy", ["", "[]", '{"Statement": [{"Effect": "Allow"}]}', "x" * 2049]
    )
    def test_with_an_invalid_policy_is_refused(self, service: Service, policy: str) -> None:
        """A policy that is malformed, too long or has other characters starts nothing."""
        request = start_request("succeed") | {"executionIamPolicy": {"policy": policy}}
        with pytest.raises(service.client.exceptions.ValidationException):
            service.client.start_job_run(**request)

    def test_twice_with_one_token_starts_one_run(self, own_service: Service) -> None:
        """A client token always returns the same run, which runs once."""
        service = own_service.start()
        request = start_request("succeed")
        answers = [service.client.start_job_run(**request) for _ in range(3)]
        assert len({answer["jobRunId"] for answer in answers}) == 1
        assert service.runs() == [answers[0]["jobRunId"]]

    def test_with_a_used_token_and_other_parameters_is_refused(self, service: Service) -> None:
        """A used client token with other parameters is a conflict."""
        request = start_request("succeed")
        service.client.start_job_run(**request)
        with pytest.raises(service.client.exceptions.ConflictException):
            service.client.start_job_run(**{**request, "name": "another"})

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            ({"clientToken": "a" * 65}, "clientToken"),
            ({"executionRoleArn": "me"}, "executionRoleArn"),
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
        """A start fails on demand and starts nothing; the next one works."""
        service = own_service.start()
        service.control(fail_next_starts=1)
        with pytest.raises(service.client.exceptions.InternalServerException):
            service.run("succeed")
        assert not service.runs()
        service.run("succeed")

    def test_whose_answer_is_lost_is_found_by_its_token(self, own_service: Service) -> None:
        """A start whose answer is lost did start a run, which boto3's retry finds."""
        service = own_service.start()
        request = start_request("succeed")
        service.control(lose_next_answers=2)
        with pytest.raises(service.client.exceptions.InternalServerException):
            service.client.start_job_run(**request)
        run_id = service.client_with_tries(2).start_job_run(**request)["jobRunId"]
        assert service.runs() == [run_id]

    def test_can_fail_with_any_error_of_the_model(self, service: Service) -> None:
        """The error of a failing start can be chosen."""
        service.control(fail_next_starts="all", fail_with="ServiceQuotaExceededException")
        with pytest.raises(service.client.exceptions.ServiceQuotaExceededException):
            service.run("succeed")


class TestLookingUp:
    @pytest.mark.parametrize(
        ("application", "run"), [(APPLICATION, "0nope"), ("0other", "0nope")], ids=["run", "app"]
    )
    def test_what_does_not_exist_is_not_found(
        self, service: Service, application: str, run: str
    ) -> None:
        """An unknown run or application is a ResourceNotFoundException, HTTP 404."""
        with pytest.raises(service.client.exceptions.ResourceNotFoundException) as raised:
            service.client.get_job_run(applicationId=application, jobRunId=run)
        assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404

    def test_the_application_tells_its_limits(self, own_service: Service) -> None:
        """GetApplication shows how many runs may run and how long one may wait."""
        service = own_service.start(drivers=3, **{"queue-timeout-minutes": 15})
        application = service.client.get_application(applicationId=APPLICATION)["application"]
        assert application["schedulerConfiguration"] == {
            "maxConcurrentRuns": 3,
            "queueTimeoutMinutes": 15,
        }

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
    def test_can_be_lost(self, service: Service, bus: EventBus) -> None:
        """The chosen number of events of the chosen states is lost; the run continues."""
        service.control(events={"lose": 1, "states": ["SUCCESS"]})
        lost, sent = service.run("succeed"), service.run("succeed")
        eventually(lambda: "SUCCESS" in bus.states(sent))
        assert bus.states(lost) == LIFE
        assert service.get(lost)["state"] == "SUCCESS"

    def test_can_come_twice(self, service: Service, bus: EventBus) -> None:
        """An event can be sent twice with the same content."""
        service.control(events={"double": 1, "states": ["SUCCESS"]})
        run_id = service.run("succeed")
        eventually(lambda: bus.states(run_id) == [*LIFE, "SUCCESS", "SUCCESS"])
        assert bus.received[-1] == bus.received[-2]

    def test_can_come_in_another_order(self, service: Service, bus: EventBus) -> None:
        """Events can be sent in reverse order."""
        service.control(events={"reverse": 5})
        run_id = service.run("succeed")
        eventually(lambda: bus.states(run_id) == ["SUCCESS", *reversed(LIFE)])

    def test_can_be_late(self, service: Service, bus: EventBus) -> None:
        """A delayed event is sent after later events."""

        def is_last(seconds: float) -> bool:
            """Return whether the delayed end of a run is sent after that of the next run."""
            service.control(events={"delay_seconds": seconds, "states": ["SUCCESS"]})
            early = service.run("succeed")
            service.wait_for(early, "SUCCESS")
            service.control()
            late = service.run("succeed")
            eventually(lambda: all("SUCCESS" in bus.states(run) for run in (early, late)))
            details = [event["Detail"] for event in bus.received]
            ended = [d["jobRunId"] for d in details if d.get("state") == "SUCCESS"]
            return ended[-2:] == [late, early]

        assert any(map(is_last, (0.5, 5, 50)))  # as long as a run takes on this machine

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
