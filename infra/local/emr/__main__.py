"""Run the service until it is stopped: `python -m infra.local.emr`."""

import argparse
import json
import logging
import queue
import shlex
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from werkzeug.serving import make_server

from infra.local.emr import runs
from infra.local.emr.api import Lane, Operations, web_app
from infra.local.emr.drivers import Driver
from infra.local.emr.faults import Faults
from infra.local.emr.limits import BURST, Limits
from infra.local.emr.rights import assumed, own, require_nothing, require_rights
from infra.local.emr.runs import Application, JobRun
from infra.local.emr.scheduler import Pace, Scheduler
from infra.local.emr.store import JobRuns
from infra.versions import EMR_RELEASE_LABEL

# Put EMR Serverless's events on EventBridge.
#
# Delivery is "best effort", as on AWS: an event that the bus does not take is logged and lost.

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


def main() -> None:
    """Serve on 127.0.0.1 until killed: the drivers end with the service."""
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for chatty in ("botocore", "werkzeug"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    applications = _applications(options)
    faults = Faults()
    bus = Bus(options.event_source, options.region, faults)
    lanes = [
        _lane(options, each, bus, prewarm=options.prewarm and each is applications[0])
        for each in applications
    ]
    require = require_rights(applications[0]) if options.iam else require_nothing
    app = web_app(Operations(lanes, faults), faults, Limits(options.burst), require)
    server = make_server("127.0.0.1", options.port, app, threaded=True)
    for lane in lanes:
        lane.scheduler.begin()
    server.serve_forever()


def _lane(
    options: argparse.Namespace, application: Application, bus: Bus, *, prewarm: bool
) -> Lane:
    """Return an application with its job runs; with `prewarm` one of its drivers waits for runs."""
    job_runs = JobRuns(options.home, application.id, partial(bus.changed, application))
    drivers = options.home / "drivers" / application.id
    scheduler = Scheduler(
        application,
        job_runs,
        lambda number: Driver(_driver(options), drivers / str(number)),
        options.home / "artefacts",
        assumed if options.iam else own,
        Pace(options.minute_seconds, options.grace_seconds, options.patience_seconds),
        prewarm=prewarm,
    )
    return Lane(application, job_runs, scheduler)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.emr")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True, help="where its state is kept")
    parser.add_argument("--drivers", type=int, default=1, help="how many runs run at a time")
    parser.add_argument("--prewarm", action="store_true", help="keep a driver waiting for runs")
    parser.add_argument("--iam", action="store_true", help="hold callers and runs to their rights")
    parser.add_argument("--application-id", default="00lakegatelocal1")
    parser.add_argument("--shared-application-id", default="")
    parser.add_argument("--shared-drivers", type=int, default=2, help="its runs at a time")
    parser.add_argument("--shared-maximum-cpu", type=int, default=5, help="its workers' vCPUs")
    parser.add_argument("--event-source", default="aws.emr-serverless")
    parser.add_argument("--queue-timeout-minutes", type=int, default=360)
    parser.add_argument("--maximum-cpu", type=int, default=64, help="vCPUs of all workers")
    parser.add_argument("--burst", type=int, default=BURST, help="calls taken at once")
    parser.add_argument("--idle-minutes", type=int, default=15, help="until it stops by itself")
    parser.add_argument("--minute-seconds", type=float, default=60, help="length of a minute")
    parser.add_argument("--grace-seconds", type=float, default=2, help="to end after a cancel")
    parser.add_argument(
        "--patience-seconds", type=float, default=0, help="to wait for a driver before a new one"
    )
    parser.add_argument("--driver", help="the driver's command instead of a local Spark")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--account", default="000000000000")
    return parser.parse_args()


def _applications(options: argparse.Namespace) -> list[Application]:
    """Return the applications, that of shared runs first."""
    own_runs = _application(options, options.application_id, "lakegate-local")
    if not options.shared_application_id:
        return [own_runs]
    shared = _application(options, options.shared_application_id, "lakegate-local-shared")
    limits = {"max_concurrent_runs": options.shared_drivers}
    return [replace(shared, maximum_cpu=options.shared_maximum_cpu, **limits), own_runs]


def _application(options: argparse.Namespace, id_: str, name: str) -> Application:
    return Application(
        id=id_,
        name=name,
        release_label=EMR_RELEASE_LABEL,
        region=options.region,
        account=options.account,
        max_concurrent_runs=options.drivers,
        queue_timeout_minutes=options.queue_timeout_minutes,
        maximum_cpu=options.maximum_cpu,
        idle_minutes=options.idle_minutes,
        created_at=time.time(),
    )


def _driver(options: argparse.Namespace) -> list[str]:
    """Return the command of a driver, by default Spark's with the project's Java and jars."""
    if options.driver:
        return shlex.split(options.driver)
    from infra.local.jars import (
        spark_jars,
    )
    from infra.local.java import (
        java_home,
    )

    command = [sys.executable, "-m", "infra.local.spark.driver"]
    where = ["--region", options.region]
    return [*command, *where, "--java-home", str(java_home()), "--jars", spark_jars()]


if __name__ == "__main__":
    main()
