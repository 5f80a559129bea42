"""Run the service until it is stopped: `python -m infra.local.emr`."""

import argparse
import logging
import shlex
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from werkzeug.serving import make_server

from infra.local import ministack
from infra.local.emr.api import Lane, Operations, web_app
from infra.local.emr.bus import Bus
from infra.local.emr.drivers import Driver
from infra.local.emr.faults import Faults
from infra.local.emr.limits import BURST, Limits
from infra.local.emr.rights import assumed, own, require_nothing, require_rights
from infra.local.emr.runs import Application
from infra.local.emr.scheduler import Pace, Scheduler
from infra.local.emr.store import JobRuns
from infra.versions import EMR_RELEASE_LABEL

_SHARED_RUNS = 2  # at a time


def main() -> None:
    """Serve on 127.0.0.1 until killed: the drivers end with the service."""
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for chatty in ("botocore", "werkzeug"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    applications = _applications(options)
    faults = Faults()
    bus = Bus(options.event_source, ministack.REGION, faults)
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
        is_shared=application.id == options.shared_application_id,
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
    return parser.parse_args()


def _applications(options: argparse.Namespace) -> list[Application]:
    """Return the applications, that of shared runs first."""
    own_runs = _application(options, options.application_id, "lakegate-local")
    if not options.shared_application_id:
        return [own_runs]
    shared = _application(options, options.shared_application_id, "lakegate-local-shared")
    cpus = options.shared_maximum_cpu
    return [replace(shared, maximum_cpu=cpus, max_concurrent_runs=_SHARED_RUNS), own_runs]


def _application(options: argparse.Namespace, id_: str, name: str) -> Application:
    return Application(
        id=id_,
        name=name,
        release_label=EMR_RELEASE_LABEL,
        region=ministack.REGION,
        account=ministack.ACCOUNT,
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
    from infra.local.jars import spark_jars
    from infra.local.java import java_home

    command = [sys.executable, "-m", "infra.local.spark.driver"]
    return [*command, "--java-home", str(java_home()), "--jars", spark_jars()]


if __name__ == "__main__":
    main()
