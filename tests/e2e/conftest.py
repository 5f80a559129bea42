"""The whole stack, started once for all end-to-end tests and used as by its users."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

import boto3
import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from typer.testing import CliRunner, Result

from access.deployment import choice as deployment
from access.deployment.checkout import ROOT
from cli.local import stack as local_stack
from cli.main import app
from functions.adapters.all import Adapters
from functions.adapters.ledger.reads import UnknownIngestion
from functions.adapters.sqs import Backlog
from functions.model import steps
from functions.model.ingestion import Ingestion, State
from infra.local import ministack, stack, stack_file
from infra.local.settings import APPLICATION, EVENT_SOURCE
from infra.local.stack_file import Stack
from lakegate.contract.model import parse
from lakegate.job.landing import LandedObject, ingestion_id
from tests.asked import asked
from tests.waiting import PATIENCE, eventually

# The pause between two reads of something that takes seconds: reads use the same few cores.
PAUSE = 0.2
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Refusal:
    """A request that IAM refused to a session of a role."""

    who: str
    action: str
    resource: str


@dataclass(frozen=True)
class Gate:
    """The running stack, and the adapters that read it; `expected` are refusals that tests want."""

    home: Path
    adapters: Adapters
    expected: set[Refusal] = field(default_factory=set)

    @property
    def stack(self) -> Stack:
        """Return the stack's present description; a rotation changes the reader's token in it."""
        return stack_file.read(self.home)

    def put_contract(self, text: str) -> None:
        self.adapters.lake.put_contract(parse(text, "test"), text)

    def drop(self, key: str, body: bytes) -> LandedObject:
        return self.adapters.landing.put(key, body)

    def end(self, landed: LandedObject) -> Ingestion:
        """Return the ingestion of a dropped file once nothing is due for it any more."""

        def finished() -> Ingestion | None:
            try:
                found = self.adapters.ledger.get(ingestion_id(landed))
            except UnknownIngestion:
                return None
            return found if found.ended and not steps.unfinished(found) else None

        return eventually(finished, PATIENCE, f"{landed.key} has not ended", PAUSE)

    def submitted(self, landed: LandedObject, attempt: int = 1) -> Ingestion:
        """Return the ingestion of a file once this attempt's own job run was started."""

        def started() -> Ingestion | None:
            known = self.adapters.ledger.together([ingestion_id(landed)])
            wanted = (attempt, State.SUBMITTED)
            return next((i for i in known if (i.attempt, i.state) == wanted), None)

        return eventually(started, PATIENCE, f"{landed.key} has no job run", PAUSE)

    def alerts(self, ingestion: Ingestion) -> list[Mapping[str, Any]]:
        """Return the messages in Slack that name the ingestion, once all of them are shown."""
        told = partial(self._is_told, ingestion.id)
        eventually(told, PATIENCE, f"{ingestion.landed.key} is not told", PAUSE)
        shown = partial(self.is_empty, "alert_queue")
        eventually(shown, PATIENCE, "the queue of alerts is not empty", PAUSE)
        messages = requests.get(f"{self.stack.slack}/messages", timeout=PATIENCE).json()
        return [message for message in messages if ingestion.id in str(message)]

    def _is_told(self, ingestion: str) -> bool:
        return not steps.unfinished(self.adapters.ledger.get(ingestion))

    def is_empty(self, queue: str) -> bool:
        """Return whether nothing waits in a queue of the stack, or is in work."""
        sqs = ministack.client("sqs", self.stack.s3)
        return not Backlog(sqs, self.stack.queues[queue]).size()

    def misbehave(self, part: str, told: Mapping[str, Any]) -> None:
        """Set the faults of a stand-in; an empty mapping ends them."""
        address = {"emr": self.stack.emr, "slack": self.stack.slack}[part]
        requests.put(f"{address}/_control", json=told, timeout=PATIENCE).raise_for_status()

    @contextmanager
    def untold(self) -> Iterator[None]:
        """Lose the events of job runs that end meanwhile: `tell` sends them."""
        self.misbehave("emr", {"events": {"lose": "all", "states": ["SUCCESS", "FAILED"]}})
        try:
            yield
        finally:
            self.misbehave("emr", {})

    def tell(self, *ingestions: Ingestion) -> None:
        """Send the events of these ingestions' own job runs, once all of them have ended."""
        jobs = self.adapters.jobs
        ended = partial(map, lambda each: jobs.get(each.job_run), ingestions)
        late = "jobs still run"
        eventually(lambda: all(run.has_ended for run in ended()), PATIENCE, late, PAUSE)
        for run in ended():
            detail = {"jobRunId": run.id, "applicationId": APPLICATION, "state": run.state}
            entry = {
                "Source": EVENT_SOURCE,
                "DetailType": "EMR Serverless Job Run State Change",
                "Detail": json.dumps(detail),
            }
            assert boto3.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0

    def refusals(self) -> list[Refusal]:
        """Return what IAM refused so far, each time that it did."""
        refused = (each for each in asked(self.home) if not each["allowed"])
        return [Refusal(each["who"], each["action"], each["resource"]) for each in refused]

    @contextmanager
    def refusing(self, who: str) -> Iterator[None]:
        """Expect refusals to sessions whose ARN contains this text, only meanwhile."""
        before = len(self.refusals())
        yield
        self.expected.update(each for each in self.refusals()[before:] if who in each.who)

    def rows(self, table: str, ref: str = "main") -> list[tuple[Any, ...]]:
        """Return a table's rows, sorted."""
        return sorted(tuple(row.values()) for row in self.table(table, ref).to_pylist())

    def table(self, table: str, ref: str = "main") -> pa.Table:
        """Return a table as every reader of the catalog sees it."""
        return self.catalog(ref, self.stack.reader_token).load_table(table).scan().to_arrow()

    def catalog(self, ref: str, token: str) -> RestCatalog:
        """Return the Iceberg catalog at a branch, for who has this token."""
        return RestCatalog(
            "lake",
            uri=f"{self.stack.iceberg}/{quote(ref, safe='')}",
            token=token,
            **{"s3.access-key-id": "test", "s3.secret-access-key": "test"},
        )


@contextmanager
def started(home: Path, **variables: str) -> Iterator[Gate]:
    """Yield a stack that is started with these variables, in whose environment this process is."""
    with mock.patch.dict(os.environ, {**variables, "LAKEGATE_HOME": str(home)}):
        try:
            running = local_stack.start(print)
            gate = Gate(home, deployment.stack_deployment(running).adapters())
            yield gate
            assert unexpected(gate) == []
        finally:
            stack.down(home, print)


# No policy allows a secret that does not exist, because its name lacks the random suffix.
_GONE = re.compile(r".*:secret:.*(?<!-[A-Za-z0-9]{6})")


def unexpected(gate: Gate) -> list[Refusal]:
    """Return what a stack refused its functions, jobs and people without a test's wanting that."""
    found = (each for each in gate.refusals() if not _GONE.fullmatch(each.resource))
    return [each for each in found if each not in gate.expected]


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with started(tmp_path_factory.mktemp("lakegate")) as gate:
        yield gate


def contract(table: str, format_: str, isolation: str = "own") -> str:
    """Return a contract over the columns id and amount; by default each file has its own run."""
    return f"""
kind: DataContract
apiVersion: v3.1.0
id: {table}
version: 1.0.0
status: active
support: [{{channel: "#shop", tool: slack}}]
customProperties:
  - {{property: format, value: {format_}}}
  - {{property: isolation, value: {isolation}}}
schema:
  - name: {table}
    logicalType: object
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
      - name: amount
        logicalType: number
        physicalType: double
        logicalTypeOptions: {{minimum: 0, maximum: 100}}
"""


@pytest.fixture
def newcomer(tmp_path: Path, gate: Gate) -> dict[str, str]:
    """Return the environment of a newcomer in an empty folder, with the project's environment.

    The stack runs already; `gate` itself tests that `lakegate up` starts it from nothing.
    """
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "LAKEGATE_"))}
    return env | {"LAKEGATE_HOME": str(gate.home), "COLUMNS": "120"}


def lakegate(*arguments: str) -> Result:
    """Run a command as in a terminal where only LAKEGATE_HOME is set."""
    return CliRunner().invoke(app, arguments, env={"LAKEGATE_LEDGER_TABLE": None})


def run(*arguments: str, code: int = 0) -> str:
    """Return the output of a command. Raise AssertionError for another exit code."""
    result = lakegate(*arguments)
    assert result.exit_code == code, result.output
    return result.output


def document(*arguments: str) -> Any:
    """Return the JSON that a command prints, which must be its whole output."""
    said = lakegate(*arguments, "--json")
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)


def found(gate: Gate, output: str) -> Ingestion:
    """Return the ingestion whose id a command printed first."""
    return gate.adapters.ledger.get(output.split(maxsplit=1)[0])


def followed(page: Path, folder: Path, env: Mapping[str, str]) -> str:
    """Write a page's files into a folder, run its commands and programs there; return the output.

    Raises AssertionError if one of them fails.
    """
    script = ["set -euo pipefail"]
    for language, name, text in _BLOCK.findall(page.read_text()):
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        elif language == "sh":
            script.append(text)
        elif language == "python":
            script.append(f"python - <<'PROGRAM'\n{text}PROGRAM\n")
    return done(["bash", "-c", "\n".join(script)], folder, env)


def done(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """Return the output of a command that succeeds."""
    ended = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run last what stops the stack that all tests share.

    Before, what all other tests made the functions ask of AWS is compared with the policies.
    """
    last = ("test_rights.py", "test_stack.py", "test_readme.py")
    items.sort(key=lambda item: last.index(item.path.name) if item.path.name in last else -1)
