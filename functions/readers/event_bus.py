"""EventBridge: announcements as events that anybody may put a rule on."""

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.readers.announcements import Announcement
from lakegate.errors import Transient

SOURCE = "lakegate"


class EventBus:
    """One event bus."""

    def __init__(self, client: Any, name: str, stage: str) -> None:
        """`client` is boto3's `events` client; `stage` is the deployment's name."""
        self._client = client
        self._name = name
        self._stage = stage

    def put(self, announcement: Announcement) -> None:
        """Put the announcement on the bus. Raises Transient BUS_UNAVAILABLE.

        Also what EventBridge refuses is tried again: an announcement is well-formed, so only
        the bus or a right can be missing, and people can add them.
        """
        entry = {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": f"Lakegate Ingestion {announcement.state.capitalize()}",
            "Detail": detail(announcement, self._stage),
        }
        try:
            answer = self._client.put_events(Entries=[entry])
        except (ClientError, BotoCoreError) as error:
            message = f"EventBridge did not take an event for {self._name!r}: {error}"
            raise Transient("BUS_UNAVAILABLE", message) from error
        if answer["FailedEntryCount"]:
            refused = answer["Entries"][0]
            why = f"{refused.get('ErrorCode')}: {refused.get('ErrorMessage')}"
            message = f"EventBridge refuses an event for {self._name!r}: {why}"
            raise Transient("BUS_UNAVAILABLE", message)


def detail(announcement: Announcement, stage: str) -> str:
    """The event's detail: the announcement, and which deployment makes it."""
    return json.dumps({"stage": stage, **json.loads(announcement.text())}, ensure_ascii=False)
