"""Every adapter reports an outage or a refusal of its outside system as a clear error."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from slack_sdk import WebClient

from functions.adapters.emr import Jobs
from functions.adapters.iceberg.tables import Tables
from functions.adapters.landing import Landing
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake
from functions.adapters.sqs import (
    ActionQueue,
    AlertQueue,
    AnnouncementQueue,
    DeadLetter,
    DeadLetters,
)
from functions.downstream.announce import EventBus
from functions.downstream.glue import Glue
from functions.downstream.queues import RefreshDeadLetters, RefreshQueue
from functions.downstream.refresh_lease import Lease, RefreshLeases
from functions.model.ingestion import State
from functions.model.intent import Intent
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Alert
from functions.model.messages.refresh import Refresh
from functions.model.notes.checkpoint import Checkpoint
from functions.notifications.email import Topic
from functions.notifications.slack import Place, SlackAlerts
from functions.notifications.threads import Threads
from lakegate.contract.model import parse
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.refusals import RightMissing
from tests.contract.aws import away, refusing
from tests.contract.conftest import Servers
from tests.contract.ledgers import ingestion
from tests.contract.test_announcements import ANNOUNCED
from tests.contract.test_replies import VIEW, replies
from tests.fakes import wire
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import ORDERS, SETTINGS
from tests.unit.lakegate.test_jobspec import SPEC

Calls = list[Callable[[], object]]
HASH = "0123456789abcdef" * 4
NOW = datetime(2026, 3, 1, tzinfo=UTC)
ALERT = Alert("t", ())


def ledger(dynamodb: Any) -> Calls:
    """Return each of the ledger's methods as a call."""
    found = Ledger(dynamodb.Table("ledger"), FakeClock().now)
    return [
        lambda: found.begin(ingestion()),
        lambda: found.save(ingestion()),
        lambda: found.get("x"),
        lambda: found.known(["x"]),
        lambda: list(found.unfinished("2026")),
        lambda: list(found.silent("2026")),
        lambda: list(found.in_state(State.PUBLISHED)),
        lambda: list(found.all()),
        lambda: list(found.same_content(ingestion())),
        lambda: list(found.versions(ingestion().landed)),
        lambda: list(found.open_failures()),
        lambda: list(found.landed("2026-03-01T00", "2026-03-01T12")),
    ]


def threads(dynamodb: Any) -> Calls:
    """Return a read and a write of the threads as calls."""
    found = Threads(dynamodb.Table("threads"), 3600, 3600, lambda: 0.0)
    return [lambda: found.known("a"), lambda: found.drop(Place("C1", "1.0"))]


def leases(dynamodb: Any) -> Calls:
    """Return each of the leases' methods as a call."""
    found, held = RefreshLeases(dynamodb.Table("marks")), Lease("shop.orders", 1, "holder")
    return [
        lambda: found.lease("shop.orders", 1, NOW, 10),
        lambda: found.done(held),
        lambda: found.free(held),
    ]


def buckets(s3: Any) -> Calls:
    """Return each of the buckets' methods as a call."""
    landing, lake = Landing(s3, "landing"), Lake(s3, "lake")
    return [
        lambda: landing.put("a", b""),
        lambda: list(landing.landed()),
        lake.contracts,
        lambda: lake.put_contract(parse(ORDERS, "orders"), ORDERS),
        lambda: lake.report("reports/x"),
        lambda: lake.group_reports("reports/x"),
        lambda: lake.contract_at("contracts/x", "v1"),
        lambda: list(lake.reports()),
        lambda: lake.delete_objects(["a"]),
        lake.checkpoint,
        lambda: lake.put_checkpoint(Checkpoint("a", "b"), ""),
        lambda: lake.is_gone("s3://lake/a"),
    ]


def dead_letters(sqs: Any) -> Calls:
    """Return each of the methods of dead letters as a call."""
    found = DeadLetters(sqs, "https://sqs/000000000000/uploads-dead")
    return [lambda: list(found.read()), lambda: found.delete(DeadLetter("", "r"))]


def queues(sqs: Any) -> Calls:
    """Return a message to each queue as a call."""
    url = "https://sqs/000000000000/q.fifo"
    pressed = ActionRequest(Verb.REPLAY, Seen("a" * 32, "1:"), "ada (U1)")
    return [
        lambda: AlertQueue(sqs, url).post("", ALERT),
        lambda: AnnouncementQueue(sqs, url).send([ANNOUNCED]),
        lambda: RefreshQueue(sqs, url).send(Refresh("a.b", 1, "s3://x")),
        lambda: RefreshDeadLetters(sqs, url).keep("x"),
        lambda: ActionQueue(sqs, url).send(pressed),
    ]


def jobs(emr: Any) -> Calls:
    """Return each of the methods of job runs as a call."""
    found = Jobs(emr, SETTINGS)
    return [
        lambda: found.start(SPEC),
        lambda: found.get("00run"),
        lambda: found.spec("00run"),
        found.runs,
    ]


def starting(emr: Any) -> Calls:
    """Return the start of a job run as a call."""
    return jobs(emr)[:1]


def bus(events: Any) -> Calls:
    """Return an event as a call."""
    return [lambda: EventBus(events, "mine", "dev").put(ANNOUNCED)]


def topic(sns: Any) -> Calls:
    """Return an alert to the topic as a call."""
    return [lambda: Topic(sns, "arn:aws:sns:us-east-1:000000000000:alerts").post(ALERT)]


def glue(client: Any) -> Calls:
    """Return a refresh of Glue as a call."""
    return [lambda: Glue(client, None, "p_").refresh(Refresh("a.b", 1, "s3://lake/x"))]


@dataclass(frozen=True)
class Adapter:
    """An adapter's service and calls, the error after an outage, and the service's refusals."""

    service: str
    calls: Callable[[Any], Calls]
    error: str
    refusals: tuple[str, ...]


ADAPTERS = (
    Adapter(
        "dynamodb",
        ledger,
        "LEDGER_UNAVAILABLE",
        ("ProvisionedThroughputExceededException", "InternalServerError"),
    ),
    Adapter("dynamodb", threads, "THREADS_UNAVAILABLE", ("ThrottlingException",)),
    Adapter("dynamodb", leases, "MARKS_UNAVAILABLE", ("ThrottlingException",)),
    Adapter(
        "s3",
        buckets,
        "STORAGE_UNAVAILABLE",
        ("SlowDown", "InternalError", "NoSuchBucket"),
    ),
    Adapter(
        "sqs",
        dead_letters,
        "QUEUE_UNAVAILABLE.*uploads-dead",
        ("ThrottlingException", "AWS.SimpleQueueService.NonExistentQueue"),
    ),
    Adapter("sqs", queues, "QUEUE_UNAVAILABLE", ("ThrottlingException",)),
    Adapter(
        "emr-serverless",
        jobs,
        "JOBS_UNAVAILABLE",
        ("ThrottlingException", "InternalServerException", "ServiceQuotaExceededException"),
    ),
    Adapter(
        "emr-serverless",
        starting,
        "JOBS_UNAVAILABLE",
        ("ConflictException", "ResourceNotFoundException"),
    ),
    Adapter("events", bus, "BUS_UNAVAILABLE.*mine", ("ThrottlingException",)),
    Adapter("sns", topic, "TOPIC_UNAVAILABLE", ("Throttled", "NotFound")),
    Adapter("glue", glue, "GLUE_UNAVAILABLE", ("ThrottlingException",)),
)


@pytest.mark.parametrize(
    ("adapter", "code"),
    [
        pytest.param(adapter, code, id=f"{adapter.calls.__name__} {code}")
        for adapter in ADAPTERS
        for code in adapter.refusals
    ],
)
def test_a_call_that_aws_refuses_for_now_is_tried_again(adapter: Adapter, code: str) -> None:
    """Throttling and other refusals are transient, and the error names the refusal."""
    for call in adapter.calls(refusing(adapter.service, code)):
        with pytest.raises(Transient, match=f"{adapter.error}.*{code}"):
            call()


# As AWS words it, with a session's ARN and the resource.
DENIED = (
    "User: arn:aws:sts::000000000000:assumed-role/lakegate-dev-role/one is not authorized to "
    "perform: a:Deed on resource: arn:aws:a:::thing because no identity-based policy allows the "
    "a:Deed action"
)


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "AuthorizationError"])
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.calls.__name__)
def test_a_right_that_is_missing_is_named_and_tried_again(adapter: Adapter, code: str) -> None:
    """The error says in one sentence which role lacks which right on what."""
    sentence = "the role lakegate-dev-role lacks the right a:Deed on arn:aws:a:::thing"
    for call in adapter.calls(refusing(adapter.service, code, DENIED)):
        with pytest.raises(RightMissing, match=f"RIGHT_MISSING: {sentence}\nGrant it"):
            call()


_OF_KEYS = {"sqs": "KMS.AccessDeniedException", "sns": "KMSAccessDenied"}


@pytest.mark.parametrize(
    "adapter",
    [each for each in ADAPTERS if each.service in _OF_KEYS],
    ids=lambda adapter: adapter.calls.__name__,
)
def test_a_right_on_a_queues_or_a_topics_key_that_is_missing_is_told(adapter: Adapter) -> None:
    """The codes that SQS and SNS have for it are as much a missing right as any other."""
    for call in adapter.calls(refusing(adapter.service, _OF_KEYS[adapter.service], DENIED)):
        with pytest.raises(RightMissing, match="lacks the right a:Deed on arn:aws:a:::thing"):
            call()


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("glue", glue, "InvalidInputException"),
        ("emr-serverless", jobs, "ValidationException"),
    ],
)
def test_a_wrong_request_is_not_tried_again(
    service: str, call: Callable[[Any], Calls], code: str
) -> None:
    """A request that AWS will never accept is a permanent error."""
    with pytest.raises(Permanent, match=code):
        call(refusing(service, code))[0]()


@pytest.mark.parametrize(
    "refusal",
    [
        "Application 00app must be in one of these statuses: [STARTED]. Current status: STOPPING",
        "No run: Applications must be in one of the following statuses: [STARTING, STARTED]",
        "Application 00app is TERMINATED",
    ],
)
def test_a_run_waits_for_an_application_that_is_not_ready(refusal: str) -> None:
    """A file that lands while an idle application stops is no wrong request: it starts later."""
    client = refusing("emr-serverless", "ValidationException", refusal)
    with pytest.raises(Transient, match="JOBS_UNAVAILABLE"):
        starting(client)[0]()


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.calls.__name__)
def test_an_aws_that_is_away_is_tried_again(adapter: Adapter) -> None:
    """If AWS is unreachable every call is a transient error."""
    for call in adapter.calls(away(adapter.service)):
        with pytest.raises(Transient, match=adapter.error):
            call()


def catalog(url: str, bearer: str = "token") -> Calls:
    """Return each of the catalog's methods as a call."""
    found = Catalog(url, bearer)
    return [
        lambda: found.create_branch("ingest/x"),
        lambda: found.head("ingest/x"),
        lambda: found.branches("ingest/"),
        lambda: found.delete_branch("ingest/x"),
        lambda: found.merge("ingest/x", HASH, HASH, "message", {}),
        found.references,
        lambda: list(found.log_of(HASH)),
        lambda: found.metadata(HASH, "a.b"),
        lambda: next(found.log()),
        lambda: found.begin("ops"),
        lambda: next(found.history()),
    ]


def tables(url: str) -> Calls:
    """Return a registration of files as a call."""
    found = Tables(url, "token", None)
    return [lambda: found.append_again("a.b", [Intent("ingest/x", HASH)], "publish/y")]


def alerts(url: str) -> Calls:
    """Return an alert to Slack as a call."""
    client = WebClient("xoxb-test", base_url=f"{url}/api/", timeout=1)
    return [lambda: SlackAlerts(client, "#lakegate").post("", ALERT)]


SERVERS: dict[Callable[[str], Calls], str] = {
    catalog: "CATALOG_",
    tables: "CATALOG_UNAVAILABLE",
    alerts: "SLACK_UNAVAILABLE",
}


@pytest.mark.parametrize("calls", SERVERS, ids=lambda calls: calls.__name__)
@pytest.mark.parametrize("answer", wire.BROKEN_ANSWERS)
def test_a_nonsensical_answer_is_tried_again(calls: Callable[[str], Calls], answer: str) -> None:
    """Any nonsensical answer in a server's place is transient."""
    with wire.answering(wire.BROKEN_ANSWERS[answer]) as url:
        for call in calls(url):
            with pytest.raises(Transient, match=SERVERS[calls]):
                call()


@pytest.mark.parametrize("calls", SERVERS, ids=lambda calls: calls.__name__)
def test_a_server_that_is_away_is_tried_again(calls: Callable[[str], Calls]) -> None:
    """If a server is unreachable every call is a transient error."""
    for call in calls(wire.nobody()):
        with pytest.raises(Transient, match=SERVERS[calls]):
            call()


def test_a_proxy_without_nessie_is_tried_again() -> None:
    """A proxy that knows no such page is no answer of Nessie's about a branch."""
    with wire.answering(wire.json("404 Not Found", {"message": "no Route matched"})) as url:
        for call in catalog(url):
            with pytest.raises(Transient):
                call()


@pytest.mark.stack
def test_a_wrong_token_is_refused(servers: Servers) -> None:
    """Without a valid token nothing can be read or changed."""
    for call in catalog(servers.nessie, "wrong"):
        with pytest.raises(Transient, match=r"TOKEN_REFUSED.*`lakegate rotate`.*`lakegate doctor`"):
            call()


def test_a_slack_that_is_silent_is_tried_again() -> None:
    """A Slack that never answers is transient, for an alert and for a reply."""
    with wire.silent() as url:
        for call in (*alerts(url), lambda: replies(url, seconds=1).reply(f"{url}/responses/1", "")):
            with pytest.raises(Transient, match="SLACK_UNAVAILABLE"):
                call()


@pytest.mark.parametrize("answer", wire.BROKEN_ANSWERS)
def test_a_nonsensical_answer_to_a_press_is_an_error_of_ours(answer: str) -> None:
    """Any nonsensical answer in Slack's place is a LakegateError."""
    with wire.answering(wire.BROKEN_ANSWERS[answer]) as url:
        with pytest.raises(LakegateError):
            replies(url).open("trigger", VIEW)
        if "JSON" not in answer:  # a response address answers in words
            with pytest.raises(LakegateError):
                replies(url).reply(f"{url}/responses/1", "x")
