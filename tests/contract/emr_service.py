"""The EMR Serverless stand-in in a process of its own, and a stand-in for EventBridge."""

import json
import os
import shlex
import sys
import threading
from pathlib import Path
from typing import Any

import boto3
import requests
from botocore.config import Config
from flask import Flask, request
from werkzeug.serving import make_server

from tests.contract.aws import ACCOUNT
from tests.contract.stand_in import StandIn
from tests.waiting import PATIENCE, eventually

APPLICATION = "00lakegatelocal1"
ROLE = "arn:aws:iam::000000000000:role/job"
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


class Service(StandIn):
    """The stand-in, and boto3's client for it; `aws` is the address of S3 and EventBridge."""

    def __init__(self, home: Path, aws: str) -> None:
        super().__init__("infra.local.emr", home, "_health")
        self.env |= {"AWS_ENDPOINT_URL": aws, "AWS_DEFAULT_REGION": "us-east-1"}
        self.client = self.client_with_tries(1)

    def start(self, *switches: str, **flags: object) -> "Service":
        """Start it and wait until it answers."""
        quick = {"minute-seconds": 60, "grace-seconds": 0.2, "burst": 1000}
        given = {"driver": FAKE_DRIVER, **quick, **flags}
        self.launch(*switches, *(f"--{name}={value}" for name, value in given.items()))
        return self

    def client_with_tries(self, tries: int) -> Any:
        """Return boto3's client, which tries each call so often."""
        config = Config(retries={"total_max_attempts": tries}, parameter_validation=False)
        return boto3.client("emr-serverless", endpoint_url=self.url, config=config, **ACCOUNT)

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

    def state(self) -> str:
        """Return the application's state."""
        return self.client.get_application(applicationId=APPLICATION)["application"]["state"]

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

    def drivers(self) -> list[int]:
        """Return the processes of the drivers."""
        health = requests.get(f"{self.url}/_health", timeout=PATIENCE).json()
        return [driver["pid"] for driver in health["drivers"]]

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
