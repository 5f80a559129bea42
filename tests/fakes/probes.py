"""The facts that a checkup can read of a deployment, some of them unavailable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from functions.health.model import (
    AnonymousAnswer,
    Application,
    Notification,
    Queue,
    TokenStatus,
)
from lakegate.errors import Transient

_Fact = TypeVar("_Fact")


@dataclass
class FakeAws:
    """See AwsProbe: AWS by names and addresses; it refuses to show anything else.

    `notified` maps each bucket to its notifications; `told` are those that tell EventBridge.
    """

    now: datetime
    notified: dict[str, list[Notification]] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    objects: set[tuple[str, str]] = field(default_factory=set)
    tables: dict[str, str] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    applications: dict[str, Application] = field(default_factory=dict)

    def date(self, bucket: str) -> datetime:
        _of(self.notified, bucket)
        return self.now

    def notifications(self, bucket: str) -> list[Notification]:
        return _of(self.notified, bucket)

    def tells_event_bridge(self, bucket: str) -> bool:
        _of(self.notified, bucket)
        return bucket in self.told

    def has_object(self, bucket: str, key: str) -> bool:
        return (bucket, key) in self.objects

    def table(self, name: str) -> str:
        return _of(self.tables, name)

    def queue(self, url: str) -> Queue:
        return _of(self.queues, url)

    def application(self, id_: str) -> Application:
        return _of(self.applications, id_)


@dataclass
class FakeNessie:
    """See NessieProbe: Nessie by tokens; without a version it does not answer."""

    tokens: dict[str, TokenStatus] = field(default_factory=dict)
    reported: str = "0.99.0"

    def anonymous_answer(self) -> AnonymousAnswer:
        self._require()
        return AnonymousAnswer(401, 0.01)

    def version(self) -> str:
        self._require()
        return self.reported

    def token_status(self, token: str) -> TokenStatus:
        self._require()
        return self.tokens.get(token, TokenStatus(401))

    def _require(self) -> None:
        if not self.reported:
            raise Transient("CATALOG_UNAVAILABLE", "Nessie did not answer")


def _of(facts: Mapping[str, _Fact], name: str) -> _Fact:
    if name not in facts:
        raise Transient("AWS_REFUSED", f"{name}: there is none, or it may not be seen")
    return facts[name]
