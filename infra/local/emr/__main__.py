"""Run the service until it is stopped: `python -m infra.local.emr`."""

import argparse
import logging
import shlex
import sys
import time
from pathlib import Path

from werkzeug.serving import make_server

from infra.local.emr.api import Operations, web_app
from infra.local.emr.drivers import Driver
from infra.local.emr.events import Bus
from infra.local.emr.faults import Faults, assumed, own
from infra.local.emr.runs import Application
from infra.local.emr.scheduler import Pace, Scheduler
from infra.local.emr.store import JobRuns
from infra.versions import EMR_RELEASE_LABEL


def main() -> None:
    """Serve on 127.0.0.1 until killed: the drivers end with the service."""
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for chatty in ("botocore", "werkzeug"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    application = _application(options)
    faults = Faults()
    bus = Bus(options.event_source, application, faults)
    job_runs = JobRuns(options.home, bus.changed)
    scheduler = Scheduler(
        application,
        job_runs,
        lambda number: Driver(_driver(options), options.home / "drivers" / str(number)),
        options.home / "artefacts",
        assumed if options.assume_roles else own,
        Pace(options.minute_seconds, options.grace_seconds),
    )
    app = web_app(Operations(application, job_runs, scheduler, faults), scheduler, faults)
    server = make_server("127.0.0.1", options.port, app, threaded=True)
    scheduler.begin(options.prewarm)
    server.serve_forever()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.emr")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True, help="where its state is kept")
    parser.add_argument("--drivers", type=int, default=1, help="how many runs run at a time")
    parser.add_argument("--prewarm", action="store_true", help="keep drivers waiting for runs")
    parser.add_argument("--assume-roles", action="store_true", help="hold runs to their rights")
    parser.add_argument("--application-id", default="00lakegatelocal1")
    parser.add_argument("--event-source", default="aws.emr-serverless")
    parser.add_argument("--queue-timeout-minutes", type=int, default=360)
    parser.add_argument("--minute-seconds", type=float, default=60, help="length of a minute")
    parser.add_argument("--grace-seconds", type=float, default=2, help="to end after a cancel")
    parser.add_argument("--driver", help="the driver's command instead of a local Spark")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--account", default="000000000000")
    return parser.parse_args()


def _application(options: argparse.Namespace) -> Application:
    return Application(
        id=options.application_id,
        release_label=EMR_RELEASE_LABEL,
        region=options.region,
        account=options.account,
        max_concurrent_runs=options.drivers,
        queue_timeout_minutes=options.queue_timeout_minutes,
        created_at=time.time(),
    )


def _driver(options: argparse.Namespace) -> list[str]:
    """Return the command of a driver, by default Spark's with the project's Java and jars."""
    if options.driver:
        return shlex.split(options.driver)
    from infra.local.jars import java_home, spark_jars

    command = [sys.executable, "-m", "infra.local.spark_driver"]
    return [*command, "--java-home", str(java_home()), "--jars", spark_jars()]


if __name__ == "__main__":
    main()
