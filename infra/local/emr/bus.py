"""Put EMR Serverless's events on EventBridge.

Delivery is "best effort", as on AWS: an event that the bus does not take is logged and lost.
"""

import json
import logging
import queue
import threading
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.emr import runs
from infra.local.emr.faults import Faults
from infra.local.emr.runs import Application, JobRun

_LOG = logging.getLogger(__name__)
# A slow bus still takes the event.
_ONE_TRY = Config(connect_timeout=2, read_timeout=60, retries={"total_max_attempts": 1})
Event = dict[str, Any]


class Bus:
    """The default event bus. A thread sends the events that the faults leave, in order."""

    def __init__(self, source: str, region: str, faults: Faults) -> None:
        self._source = source
        self._faults = faults
        self._waiting: queue.SimpleQueue[tuple[list[Event], float]] = queue.SimpleQueue()
        self._held: list[Event] = []
        self._client = boto3.client("events", region_name=region, config=_ONE_TRY)
        threading.Thread(target=self._deliver, name="events", daemon=True).start()

    def changed(self, application: Application, before: JobRun | None, run: JobRun) -> None:
        """Send the event of a job run's change; `before` is None for a new run."""
        detail = {
            "jobRunId": run.id,
            "applicationId": application.id,
            "arn": runs.arn(run, application),
            "releaseLabel": application.release_label,
            "createdBy": application.caller,
            "updatedAt": _iso(run.updated_at),
            "createdAt": _iso(run.created_at),
            "state": run.state,
            **({"previousState": before.state} if before else {}),
        }
        event = {
            "Source": self._source,
            "DetailType": "EMR Serverless Job Run State Change",
            "Detail": json.dumps(detail),
            "Resources": [],
        }
        faults = self._faults.events
        if faults.states and run.state not in faults.states:
            self._waiting.put(([event], 0))
        else:
            self._waiting.put((self._left_of(event), faults.delay_seconds))

    def _left_of(self, event: Event) -> list[Event]:
        """Return the events to send in place of an event that the faults concern."""
        faults = self._faults.events
        if self._faults.strikes(faults, "lose"):
            _LOG.warning("lost, as /_control asked: %s", event["Detail"])
            return []
        copies = 2 if self._faults.strikes(faults, "double") else 1
        self._held = [event] * copies + self._held
        faults.reverse = max(0, faults.reverse - 1)
        if faults.reverse:
            return []
        released, self._held = self._held, []
        return released

    def _deliver(self) -> None:
        while True:
            events, delay = self._waiting.get()
            if delay:
                later = threading.Timer(delay, self._send, [events])
                later.daemon = True
                later.start()
            else:
                self._send(events)

    def _send(self, events: list[Event]) -> None:
        for event in events:
            try:
                answer = self._client.put_events(Entries=[event])
            except (BotoCoreError, ClientError) as error:
                _LOG.warning("lost, the bus does not answer (%s): %s", error, event["Detail"])
                continue
            if answer["FailedEntryCount"]:
                _LOG.warning("lost, the bus refused it: %s %s", answer["Entries"], event["Detail"])


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
