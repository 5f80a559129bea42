"""Lambda: the queue of announcements for OpenLineage. Sends what became of each file."""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
import requests

from functions.adapters.s3 import Lake, Missing
from functions.adapters.secrets import Bearer, Secret
from functions.downstream.lineage import Lineage, events
from functions.downstream.queues import BodyQueue
from functions.model.messages.announcement import Announcement
from functions.pipeline.outcome.reports import readable_report
from functions.settings import LineageSettings
from functions.sqs_handler import sqs_handler
from functions.telemetry import logger, metrics
from functions.wiring import CONFIG
from lakegate.contract.model import Contract
from lakegate.errors import Permanent, Transient

_SECONDS = 10
# Answers to an event that no retry changes; all others, even a refused key, can be mended.
_REFUSED = (400, 413, 415, 422)


class Collector:
    """A server that takes OpenLineage events, such as Marquez or DataHub."""

    def __init__(self, url: str, bearer: Bearer | None) -> None:
        """Send to this address, with an API key if there is one."""
        self._url = url
        self._bearer = bearer
        self._session = requests.Session()
        self._session.trust_env = False  # .netrc would put another login into requests

    def send(self, event: dict[str, Any]) -> None:
        """Send an event. Raises Permanent LINEAGE_REFUSED, Transient LINEAGE_UNAVAILABLE."""
        try:
            answer = self._session.post(
                self._url, json=event, auth=self._bearer, timeout=_SECONDS, allow_redirects=False
            )
        except requests.RequestException as error:
            message = f"the collector of OpenLineage events did not answer: {error}"
            raise Transient("LINEAGE_UNAVAILABLE", message) from error
        told = f"the collector of OpenLineage events answered {answer.status_code}"
        if answer.status_code in _REFUSED:
            raise Permanent("LINEAGE_REFUSED", f"{told}: {answer.text[:200]}")
        if not 200 <= answer.status_code < 300:
            raise Transient("LINEAGE_UNAVAILABLE", f"{told}: {answer.text[:200]}")


@dataclass(frozen=True)
class Target:
    """The collector, what is sent to it, and the dead letters that it refuses."""

    collector: Collector
    lake: Lake
    dead_letters: BodyQueue


def send_lineage(target: Target, body: str) -> None:
    """Send the events of the announcement in a message's body.

    If it fails in between, all are sent again: their run has the same id, so that a collector has
    one. What is refused permanently goes to the dead letters at once. Raises Transient.
    """
    try:
        announced, lake = Announcement.read(body), target.lake
        report = readable_report(lake, announced.report)
        told = Lineage(announced, lake.bucket, report, _contract(lake, announced))
        for event in events(told):
            target.collector.send(event)
    except Permanent as refused:
        logger.error("lineage was refused", extra={"body": body, "why": str(refused)})
        target.dead_letters.send(body)
        return
    metrics.add_metric("LineageSent", "Count", 1)


def _contract(lake: Lake, announcement: Announcement) -> Contract | None:
    """Return the contract of that time; None if none claimed the file, or its text is gone."""
    key, _, version = announcement.contract.partition("@")
    try:
        return lake.contract_at(key, version).contract if version else None
    except (Missing, Permanent) as error:
        logger.info("lineage without a contract", extra={"key": key, "why": error.message})
        return None


@cache
def target() -> Target:
    """Return the target as this Lambda's environment configures it, created once."""
    settings = LineageSettings.of(os.environ)
    s3, sqs, vault = (boto3.client(name, config=CONFIG) for name in ("s3", "sqs", "secretsmanager"))
    secret = settings.lineage_secret
    return Target(
        Collector(settings.lineage_url, Bearer(Secret(vault, secret)) if secret else None),
        Lake(s3, settings.lake_bucket, limits=settings.limits),
        BodyQueue(sqs, settings.lineage_dead_letters),
    )


handler = sqs_handler(send_lineage, target)
