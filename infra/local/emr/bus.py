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
        self._waiting: queue.SimpleQueue[Event] = queue.SimpleQueue()
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
        for _ in range(self._copies(run, event)):
            self._waiting.put(event)

    def _copies(self, run: JobRun, event: Event) -> int:
        """Return how often to send the event of a change: once, unless it is to go wrong."""
        faults = self._faults.events
        if faults.states and run.state not in faults.states:
            return 1
        if self._faults.strikes(faults, "lose"):
            _LOG.warning("lost, as /_control asked: %s", event["Detail"])
            return 0
        return 2 if self._faults.strikes(faults, "double") else 1

    def _deliver(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                answer = self._client.put_events(Entries=[event])
            except (BotoCoreError, ClientError) as error:
                _LOG.warning("lost, the bus does not answer (%s): %s", error, event["Detail"])
                continue
            if answer["FailedEntryCount"]:
                _LOG.warning("lost, the bus refused it: %s %s", answer["Entries"], event["Detail"])


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
