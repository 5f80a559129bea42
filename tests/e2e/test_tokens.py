"""Tokens on the running stack: rotated during ingestions, and readable nowhere."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import chain
from typing import Any

import boto3
import pytest
import requests

from access.deployment.checkout import ROOT
from functions.adapters.keyring import SecretKeyring
from functions.adapters.ledger.reads import UnknownIngestion
from functions.model.ingestion import NOT_STARTED, Ingestion, State
from functions.operations.reconcile.compare import reconciled
from infra.local import processes
from infra.local.ministack import KeyFiles
from infra.local.parts import known_ports, parts
from lakegate import nessie_tokens
from lakegate.job.landing import LandedObject, ingestion_id
from lakegate.nessie_tokens import ROLES, Keys
from tests.asked import asked
from tests.compiled import Compiled
from tests.e2e.conftest import PAUSE, Gate, contract, run
from tests.e2e.killing import sweep_grace, sweeping
from tests.leaks import Place, command_lines, files, leaks, secrets_of
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

TABLE = "tokens.orders"
BAD_SECRET = "no-token-4f1d0c"
# The places of secrets: only their owner may read the files, and the last is Secrets Manager.
KEPT = ("keys/", "ministack/state/secretsmanager.json")
UPLOADER = "lakegate/local/nessie/uploader"


def held(gate: Gate) -> Keys:
    return Keys.of(KeyFiles(gate.home / "keys").read())


def orders(*ids: int, amount: float = 1.0) -> bytes:
    return "".join(["id,amount\n", *(f"{id_},{amount}\n" for id_ in ids)]).encode()


def statuses(gate: Gate, held: Keys) -> set[int]:
    """Return the statuses of Nessie's answers to those tokens."""
    url = f"{gate.stack.nessie}/api/v2/trees/main"
    headers = [{"Authorization": f"Bearer {token}"} for token in held.tokens.values()]
    return {requests.get(url, headers=each, timeout=PATIENCE).status_code for each in headers}


def begun(gate: Gate, landed: LandedObject) -> Callable[[], bool]:
    """Return a function that says whether the file has a job run."""

    def look() -> bool:
        try:
            return gate.adapters.ledger.get(ingestion_id(landed)).state not in NOT_STARTED
        except UnknownIngestion:
            return False

    return look


class Story:
    """One run with every place that might reveal a secret; `keys` are all that were ever used."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.keys = [held(gate)]
        self.told: list[str] = []

    def drop(self, *ids: int, **more: float) -> LandedObject:
        return self.gate.drop(f"tokens/orders/{ids[0]}.csv", orders(*ids, **more))

    def rotate(self, *options: str) -> None:
        self.told.append(run("rotate", *options))
        self.keys.append(held(self.gate))

    def ends(self, *landed: LandedObject) -> list[State]:
        return [self.end(each).state for each in landed]

    def end(self, landed: LandedObject) -> Ingestion:
        return self.gate.end(landed)


@pytest.fixture(scope="module")
def story(gate: Gate) -> Story:
    gate.put_contract(contract(TABLE, "csv"))
    return Story(gate)


def test_files_go_on_over_a_rotation(story: Story) -> None:
    """A rotation disturbs no file at any stage: each is published, and old tokens stay valid."""
    first = story.drop(1)
    eventually(begun(story.gate, first), PATIENCE, pause=PAUSE)

    story.rotate()

    assert story.ends(first, story.drop(2)) == [State.PUBLISHED] * 2
    assert "Nessie accepts each of them" in story.told[-1]
    assert statuses(story.gate, story.keys[0]) == statuses(story.gate, story.keys[1]) == {200}


def test_the_function_renews_tokens_while_files_are_ingested(story: Story) -> None:
    """Tokens that end soon are replaced in their secrets by others of the same key.

    Files at every stage are published, Nessie accepts old and new tokens, and no request of the
    function was denied. On this machine the signing key is not in Secrets Manager otherwise.
    """
    gate, vault, function = story.gate, boto3.client("secretsmanager"), "lakegate-local-rotate"
    earlier = len(list(_asked(gate, "RotateRole")))
    keyring, now = SecretKeyring(vault, "local"), datetime.now(UTC)
    keyring.write(nessie_tokens.SIGNING_KEY, held(gate).signing_key)
    old = nessie_tokens.rotate(keyring, now - timedelta(days=70))
    first = story.drop(3)
    eventually(begun(gate, first), PATIENCE, pause=PAUSE)

    answer = json.loads(boto3.client("lambda").invoke(FunctionName=function)["Payload"].read())

    new = Keys.of(keyring.read())
    vault.delete_secret(
        SecretId=f"lakegate/local/nessie/{nessie_tokens.SIGNING_KEY}",
        ForceDeleteWithoutRecovery=True,
    )
    story.keys += [old, new]
    assert {role: round(days) for role, days in answer.items()} == dict.fromkeys(ROLES, 90)
    assert new.signing_key == old.signing_key
    assert not set(new.tokens.values()) & set(old.tokens.values())
    assert story.ends(first, story.drop(4)) == [State.PUBLISHED] * 2
    assert statuses(gate, old) == statuses(gate, new) == {200}
    calls = list(_asked(gate, "RotateRole"))[earlier:]
    role = Compiled.of(ROOT / "template.yaml", Stage="local").roles()["RotateRole"]
    assert "secretsmanager:PutSecretValue" in {each["action"] for each in calls}
    for each in calls:
        assert each["allowed"], each
        assert role.may(each["action"], each["resource"]), each


def _asked(gate: Gate, role: str) -> Iterator[Mapping[str, Any]]:
    """Yield the requests that a role made of AWS, with IAM's answers."""
    for each in asked(gate.home):
        if f"-{role}-" in f"{each['who'].split('/')[1]}-":
            yield each


def test_a_leaked_token_ends_and_no_file_is_lost(story: Story) -> None:
    """A new key during ingestions makes Nessie refuse the old tokens, and every file is published.

    An earlier rotation was killed: Nessie has a key that signed no token at all, and the uploader's
    secret holds nonsense.
    """
    gate = story.gate
    first = story.drop(5)
    eventually(begun(gate, first), PATIENCE, pause=PAUSE)

    unknown = nessie_tokens.due({}, datetime.now(UTC))[nessie_tokens.SIGNING_KEY]
    KeyFiles(gate.home / "keys").write(nessie_tokens.SIGNING_KEY, unknown)
    every = parts(gate.home, ROOT, known_ports(gate.home), "")
    processes.start(gate.home, every["nessie"].command)
    boto3.client("secretsmanager").put_secret_value(SecretId=UPLOADER, SecretString=BAD_SECRET)
    waiting = story.drop(6)
    log = gate.home / "logs" / "ministack.log"
    eventually(lambda: b"TOKEN_REFUSED" in log.read_bytes(), PATIENCE, pause=PAUSE)
    story.rotate("--key")

    # A step that a refused token stopped is the sweep's to repeat.
    with sweep_grace(gate, 2), sweeping(gate, 2):
        assert story.ends(first, waiting) == [State.PUBLISHED] * 2
    *ended, current = (statuses(gate, each) for each in story.keys)
    assert (ended, current) == ([{401}] * 4, {200})
    assert gate.rows(TABLE) == [(id_, 1.0) for id_ in range(1, 7)]
    assert reconciled(gate.adapters, TABLE, thorough=True).problems == ()


def test_no_secret_is_reported_or_stored_anywhere(story: Story) -> None:
    """No token, key or bad secret is readable after all kinds of states, errors and rotations.

    This covers logs, objects, ledger, queues, alerts, job runs, command lines and the output of the
    command, except for the reader's own token, which `lakegate status --json` prints on purpose.
    """
    gate = story.gate
    rejected, errored = story.drop(7, amount=500.0), gate.drop("tokens/orders/x.csv", b'"')
    assert story.ends(rejected) == [State.REJECTED]
    assert story.ends(errored) != [State.PUBLISHED]
    eventually(lambda: gate.alerts(story.end(rejected)), PATIENCE)
    update = f"UPDATE {TABLE} SET amount = 2 WHERE id = 1"
    story.told.append(run("change", TABLE, "--sql", update, "--wait"))
    commands = ("status", "runs", "show", "inspect", "reconcile")
    for command in commands:
        more = [story.end(rejected).id] if command in ("show", "inspect") else []
        story.told += [run(command, *more), run(command, *more, "--json")]

    slack = boto3.client("secretsmanager").get_secret_value(SecretId="lakegate/local/slack")
    others = {"Slack's token": slack["SecretString"], "the bad secret": BAD_SECRET}
    secrets = secrets_of(story.keys, others)

    assert leaks(everything(story), secrets) == []
    for kept in (gate.home / "keys").iterdir():
        assert kept.stat().st_mode & 0o077 == 0
    assert (gate.home / "stack.json").stat().st_mode & 0o077 == 0


def everything(story: Story) -> Iterator[Place]:
    """Yield everything readable of the stack, except for the places of secrets."""
    reader = story.keys[-1].tokens["reader"].encode()
    for where, content in distinct(chain(files(story.gate.home), answers(story), printed(story))):
        if where.startswith(("stack.json", "status --json")):
            yield where, content.replace(reader, b"")
        elif not where.startswith(KEPT):
            yield where, content
    yield from command_lines(f"LAKEGATE_PART={story.gate.home.resolve()}")


def distinct(places: Iterable[Place]) -> Iterator[Place]:
    """Yield each content once, and nothing that was packaged: that is older than every secret.

    The places of secrets, and those that may hold the reader's token, are always yielded.
    """
    known = {sha256(content).digest() for _, content in files(ROOT / "build")}
    for where, content in places:
        digest = sha256(content).digest()
        if where.startswith((*KEPT, "stack.json", "status --json")):
            yield where, content
        elif digest not in known:
            known.add(digest)
            yield where, content


def printed(story: Story) -> Iterator[Place]:
    for text in story.told:
        status = '"reader_token"' in text
        yield "status --json" if status else text[:40], text.encode()


def answers(story: Story) -> Iterator[Place]:
    """Yield the parts' answers about all their contents."""
    gate = story.gate
    settings, logs, emr = (
        gate.adapters.settings,
        boto3.client("logs"),
        boto3.client("emr-serverless"),
    )
    table = boto3.resource("dynamodb").Table(settings.ledger_table)
    functions = boto3.client("lambda").list_functions()["Functions"]
    runs = [
        (application, run["id"])
        for application in settings.emr_applications
        for run in emr.list_job_runs(applicationId=application)["jobRuns"]
    ]
    found: dict[str, Any] = {
        "ledger": table.scan()["Items"],
        "Slack": requests.get(f"{gate.stack.slack}/messages", timeout=PATIENCE).json(),
        "functions": functions,
        "job runs": [emr.get_job_run(applicationId=where, jobRunId=run) for where, run in runs],
        "stacks": boto3.client("cloudformation").describe_stacks()["Stacks"],
        "main's log": [vars(commit) for commit in gate.adapters.catalog.log()],
        "audit results": gate.table("ops.audit_results").to_pylist(),
    }
    assert all(found.values()), found
    for group in logs.describe_log_groups()["logGroups"]:
        name = group["logGroupName"]
        found[name] = logs.filter_log_events(logGroupName=name)["events"]
    assert any("TOKEN_REFUSED" in str(each) for each in found.values())
    for where, answer in found.items():
        yield where, json.dumps(answer, default=str).encode() + os.fsencode(str(answer))
