"""Each row is once on main: for repeated and replaced files, lost events, absent systems."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
import requests

from functions.adapters.emr import RunState
from functions.model.ingestion import State
from infra.local import ministack
from lakegate.job.landing import LandedObject, ingestion_id
from tests.e2e.conftest import PAUSE, Gate, contract
from tests.e2e.killing import frozen
from tests.fakes.schema import validate_announcement
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack


def csv(*ids: int) -> bytes:
    return "".join(["id,amount\n", *[f"{i},1.5\n" for i in ids]]).encode()


def prepared(gate: Gate, name: str, **settings: str) -> str:
    """Return the landing prefix of the test's own table; `settings` are the contract's."""
    text = contract(f"once.{name}", "csv", settings.pop("isolation", "shared"))
    for setting, value in settings.items():
        listed = f"customProperties:\n  - {{property: {setting}, value: {value}}}\n"
        text = text.replace("customProperties:\n", listed)
    gate.put_contract(text)
    return f"once/{name}"


def ids(gate: Gate, name: str) -> list[int]:
    return [row[0] for row in gate.rows(f"once.{name}")]


@pytest.fixture(scope="module")
def forgotten(gate: Gate) -> LandedObject:
    """Return a file whose job has ended and whose events are lost; only the sweep can find it."""
    prefix = prepared(gate, "lost", isolation="own")
    gate.misbehave("emr", {"events": {"lose": "all"}})
    landed = gate.drop(f"{prefix}/a.csv", csv(1))
    eventually(lambda: _has_run(gate, landed), PATIENCE, "its job run has not ended", PAUSE)
    gate.misbehave("emr", {})
    return landed


@dataclass(frozen=True)
class Dropped:
    """The first files of several tests' tables, and EventBridge's events about `at_once`."""

    first: Mapping[str, LandedObject]
    at_once: Sequence[LandedObject]
    received: Callable[[], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def dropped(gate: Gate, forgotten: LandedObject) -> Dropped:
    """Drop all files before any is awaited; the sweep finds the forgotten file meanwhile."""
    prepared(gate, "at_once")
    prepared(gate, "newest", onNewVersion="replace")
    scope = "quality: [{metric: duplicateValues, mustBe: 0, customProperties: [SCOPE]}]"
    scope = scope.replace("SCOPE", "{property: scope, value: table}")
    text = contract("once.rivals", "csv").replace("unique: true", f"unique: true, {scope}")
    gate.put_contract(text)
    received = heard(gate, "once.at_once")
    at_once = [gate.drop(f"once/at_once/{n}.csv", csv(n, n + 100)) for n in range(3)]
    others = {"rivals": csv(1), "newest": csv(100)}
    first = {name: gate.drop(f"once/{name}/first.csv", body) for name, body in others.items()}
    return Dropped(first, at_once, received)


def test_files_at_once_are_all_published(gate: Gate, dropped: Dropped) -> None:
    """Files for one table that are dropped at once are all published, each row once."""
    landed = dropped.at_once
    assert {gate.end(each).state for each in landed} == {State.PUBLISHED}
    assert ids(gate, "at_once") == [*range(3), *range(100, 103)]
    eventually(lambda: not gate.adapters.catalog.branches("ingest/once.at_once/"))
    readers_hear_of_all(
        gate, "once.at_once", {each.id for each in map(gate.end, landed)}, dropped.received
    )


def heard(gate: Gate, table: str) -> Callable[[], list[dict[str, Any]]]:
    """Add a rule to EventBridge, as a consumer does; return a function that reads its events."""
    sqs, events = (ministack.client(name, gate.stack.s3) for name in ("sqs", "events"))
    url = sqs.create_queue(QueueName="readers")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    pattern = {"source": ["lakegate"], "detail": {"table": [table]}}
    events.put_rule(Name="readers", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="readers", Targets=[{"Id": "1", "Arn": arn["QueueArn"]}])

    def received() -> list[dict[str, Any]]:
        got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"]) for message in got]

    return received


def readers_hear_of_all(
    gate: Gate, table: str, ids_: set[str], received: Callable[[], list[dict[str, Any]]]
) -> None:
    """Assert that each ingestion has its event, and that Glue's table equals main's."""
    events: dict[str, dict[str, Any]] = {}

    def all_told() -> bool:
        events.update({event["detail"]["ingestion"]: event for event in received()})
        return events.keys() >= ids_

    eventually(all_told, PATIENCE, f"of {ids_} not all are told")
    for event in events.values():
        validate_announcement(event["detail"])
        assert event["detail-type"] == "Lakegate Ingestion Published"
    catalog, glue = gate.adapters.catalog, ministack.client("glue", gate.stack.s3)
    newest = catalog.metadata(catalog.tip().hash, table)

    def follows() -> bool:
        try:
            there = glue.get_table(DatabaseName="lakegate_once", Name=table.rpartition(".")[2])
        except glue.exceptions.EntityNotFoundException:
            return False
        return bool(there["Table"]["Parameters"]["metadata_location"] == newest)

    eventually(follows, PATIENCE, "Glue is not brought to what main has")


def test_of_two_files_with_one_key_one_is_published(gate: Gate, dropped: Dropped) -> None:
    """Of two simultaneous files that share a key one is published, and the other is alerted."""
    assert gate.end(dropped.first["rivals"]).state is State.PUBLISHED
    landed = [gate.drop(f"once/rivals/{n}.csv", csv(7, 10 + n)) for n in range(2)]
    ended = [gate.end(each) for each in landed]
    assert sorted(each.state for each in ended) == [State.PUBLISHED, State.REJECTED]
    (rejected,) = (each for each in ended if each.state is State.REJECTED)
    assert [check["id"] for check in rejected.audit.checks] == ["id.duplicateValuesInTable"]
    assert len(gate.alerts(rejected)) == 1
    (other,) = (10 + n for n, each in enumerate(ended) if each.state is State.PUBLISHED)
    assert ids(gate, "rivals") == [1, 7, other]


def test_a_doubled_event_changes_nothing(gate: Gate) -> None:
    """Repeating an event before and after the final state does not publish the file again."""
    prefix = prepared(gate, "doubled", isolation="own")
    gate.misbehave("emr", {"events": {"double": 20}})
    landed = gate.drop(f"{prefix}/a.csv", csv(1))
    event = _event(landed.bucket, landed.key, landed.version, landed.etag, landed.size)
    queue = gate.stack.queues["upload_queue"]
    sqs = boto3.client("sqs")
    sqs.send_message(QueueUrl=queue, MessageBody=event)
    gate.end(landed)
    sqs.send_message(QueueUrl=queue, MessageBody=event)
    eventually(lambda: gate.is_empty("upload_queue"), PATIENCE, "the queue is not worked off")
    gate.misbehave("emr", {})
    assert gate.end(landed).state is State.PUBLISHED
    assert ids(gate, "doubled") == [1]


def test_a_newer_version_takes_the_older_ones_place(gate: Gate, dropped: Dropped) -> None:
    """If versions replace each other, only the newest one's rows remain, beside other files'."""
    prefix = "once/newest"
    assert gate.end(dropped.first["newest"]).state is State.PUBLISHED
    first = gate.end(gate.drop(f"{prefix}/a.csv", csv(1, 2)))
    second = gate.end(gate.drop(f"{prefix}/a.csv", csv(2, 3, 4)))
    assert (second.state, second.replaced) == (State.PUBLISHED, (first.id,))
    assert second.audit.replaced_rows == 2
    assert ids(gate, "newest") == [2, 3, 4, 100]
    at_once = [gate.drop(f"{prefix}/a.csv", csv(n, n + 1, n + 2, n + 3)) for n in (10, 20)]
    assert {gate.end(each).state for each in at_once} <= {State.PUBLISHED, State.IGNORED}
    assert ids(gate, "newest") == [20, 21, 22, 23, 100]
    own = ("ingest/once.newest/", "publish/once.newest/")
    eventually(lambda: not gate.adapters.catalog.branches(*own))  # who came too late tidies up


def test_aws_away_only_delays(gate: Gate) -> None:
    """A file is published even if S3, queues and ledger stop answering during its job."""
    prefix = prepared(gate, "aws", isolation="own")
    landed = gate.drop(f"{prefix}/a.csv", csv(1))
    gate.submitted(landed)
    with frozen(gate, "ministack"), pytest.raises(requests.Timeout):
        requests.get(gate.stack.s3, timeout=3)
    assert gate.end(landed).state is State.PUBLISHED
    assert ids(gate, "aws") == [1]


def test_slack_away_delays_an_alert_and_loses_none(gate: Gate) -> None:
    """The alert of a rejection waits while Slack does not answer, and then arrives."""
    prefix = prepared(gate, "slack")
    gate.misbehave("slack", {"fail_next": 1})
    ended = gate.end(gate.drop(f"{prefix}/a.csv", b"id,amount\n1,1000\n"))
    assert ended.state is State.REJECTED
    assert len(gate.alerts(ended)) == 1


def test_lost_events_are_found_by_the_sweep(gate: Gate, forgotten: LandedObject) -> None:
    """The scheduled sweep publishes a file whose job run's events are all lost."""
    assert gate.end(forgotten).state is State.PUBLISHED
    assert ids(gate, "lost") == [1]


def _event(bucket: str, key: str, version: str, etag: str, size: int) -> str:
    found = {"key": key, "size": size, "eTag": etag, "versionId": version, "sequencer": "0A"}
    record = {"eventTime": "2026-01-01T00:00:00.000Z", "s3": {"bucket": {"name": bucket}}}
    record["s3"]["object"] = found  # type: ignore[index]
    return json.dumps({"Records": [record]})


def _has_run(gate: Gate, landed: LandedObject) -> bool:
    """Return whether the file's job run succeeded, which no event reports here."""
    known = gate.adapters.ledger.together([ingestion_id(landed)])
    runs = [gate.adapters.jobs.get(each.job_run) for each in known if each.job_run]
    return any(run.state is RunState.SUCCESS for run in runs)
