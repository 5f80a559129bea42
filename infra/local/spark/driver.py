"""A warm Spark driver: one JVM with a running SparkContext, and a fresh Python process a job run.

Starting Spark takes ten seconds, so the JVM stays. For each run this process forks one, which
attaches itself to the JVM and executes the entry point (`run.py`): whatever a run does to
modules, environment, path, log handlers or threads ends with its process.

`emr/drivers.py` starts this program and documents the messages in its pipes. The JVM's output goes
to the stderr of the current run, between runs to that of this process.
"""

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Any, NoReturn

# Imported once for all runs: AWS's client, YAML and pandas.
import boto3  # noqa: F401
import pyspark.testing  # noqa: F401
import yaml  # noqa: F401
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from infra.local.java import SPARK_SETTINGS, WARM_UP_SETTINGS
from infra.local.spark.run import Order, execute

_SETTINGS = {
    **SPARK_SETTINGS,
    "spark.app.name": "emr-serverless",
    "spark.driver.memory": "2g",
    # A file that needs too much memory fails its own run, not the driver.
    "spark.executor.killOnFatalError.depth": "0",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # on EMR s3:// has AWS's own file system
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    # the current run's, which Iceberg's own client uses, too
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    ),
}

_WARM_UP = {
    "run": "warm-up",
    "entry_point": str(Path(__file__).with_name("warm_up.py")),
    "arguments": [],
    "py_files": [],
    "environment": {},
    "conf": WARM_UP_SETTINGS,
    "stdout": os.devnull,
    "stderr": "/dev/fd/2",
}


@dataclass(frozen=True)
class _Run:
    """The current run: its process, its stderr, and its report so far."""

    id: str
    process: int
    stderr: FileIO
    report: bytearray = field(default_factory=bytearray)


class Driver:
    """One JVM, and at most one run in it."""

    def __init__(self, jvm: subprocess.Popen[bytes], output: FileIO, replies: IO[str]) -> None:
        self._jvm = jvm
        self._replies = replies
        self._selector = selectors.SelectSelector()
        self._selector.register(output, selectors.EVENT_READ, self._pass_on)
        self._selector.register(FileIO(0), selectors.EVENT_READ, self._hear)
        self._waiting: deque[Order] = deque()
        self._run: _Run | None = None

    def serve(self) -> NoReturn:
        """Warm Spark up, then execute orders until there are no more."""
        self._begin(_WARM_UP)
        while True:
            for key, _ in self._selector.select():
                key.data(key.fileobj)
            if self._waiting and not self._run:
                order = self._waiting.popleft()
                self._begin(order)
                self._say({"run": order["run"]})

    def _say(self, message: dict[str, Any]) -> None:
        print(json.dumps(message), file=self._replies, flush=True)

    def _hear(self, orders: FileIO) -> None:
        line = orders.readline()
        if not line:
            self._end()
        order = json.loads(line)
        if "cancel" not in order:
            self._waiting.append(order)
        elif self._run and self._run.id == order["cancel"]:
            os.kill(self._run.process, signal.SIGTERM)

    def _pass_on(self, output: FileIO) -> None:
        printed = output.read(65536)
        if printed:
            os.write(self._run.stderr.fileno() if self._run else 2, printed)
        elif self._run:
            self._selector.unregister(output)  # the JVM died; the run will notice
        else:
            self._end()

    def _begin(self, order: Order) -> None:
        stdout, stderr = FileIO(order["stdout"], "a"), FileIO(order["stderr"], "a")
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            self._let_go()
            sys.exit(execute(order, writing))
        os.close(writing)
        stdout.close()
        self._run = _Run(order["run"], process, stderr)
        listen = partial(self._listen, self._run)
        self._selector.register(FileIO(reading), selectors.EVENT_READ, listen)

    def _let_go(self) -> None:
        """Close, in a run's process, what only the driver may hold open."""
        self._replies.close()
        if self._jvm.stdin:
            self._jvm.stdin.close()

    def _listen(self, run: _Run, report: FileIO) -> None:
        """Read a part of the run's report; the run has ended if there is no more."""
        said = report.read(65536)
        run.report.extend(said)
        if not said:
            self._selector.unregister(report)
            report.close()
            self._conclude(run)

    def _conclude(self, run: _Run) -> None:
        """Report how the run ended. If the JVM may be unusable, end the driver."""
        _, status = os.waitpid(run.process, 0)
        code = os.waitstatus_to_exitcode(status)
        said = json.loads(run.report or "{}")
        run.stderr.close()
        self._run = None
        died = self._jvm.poll()
        if died is not None:
            self._lose(run, code, f"The Spark driver died: its JVM {_manner(died)}.")
        elif said.get("exit") != code:
            self._lose(run, code, f"The job's process {_manner(code)} before it was done.")
        elif run.id != _WARM_UP["run"]:
            self._say({"run": run.id, **said})
            if said.get("leaving"):
                self._end()
        elif code:
            self._end()
        else:
            self._say({"ready": True})

    def _lose(self, run: _Run, code: int, why: str) -> NoReturn:
        self._say({"run": run.id, "exit": code, "lost": why})
        self._end()

    def _end(self) -> NoReturn:
        """End the JVM and the run with it."""
        if self._run:
            os.kill(self._run.process, signal.SIGKILL)
        self._jvm.kill()
        sys.exit(1)


def _manner(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _start_jvm(settings: dict[str, str]) -> tuple[subprocess.Popen[bytes], FileIO]:
    """Start a JVM with these settings; return it and its output. The environment points runs to it.

    Raises PySparkRuntimeError.
    """
    reading, writing = os.pipe()
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    output = FileIO(reading)
    try:
        gateway = launch_gateway(conf, {"stdout": writing, "stderr": writing})
    except PySparkRuntimeError:
        os.close(writing)
        os.write(2, output.readall())
        raise
    os.close(writing)
    where = gateway.gateway_parameters
    os.environ["PYSPARK_GATEWAY_PORT"] = str(where.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = where.auth_token
    return gateway.proc, output


def _settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the SparkContext's settings; AWS's variables have S3's address.

    EMR's image knows its region: S3A needs no setting there.
    """
    env = os.environ
    given = {
        "spark.master": "local[*]",
        "spark.jars": options.jars,
        "spark.local.dir": str(Path.cwd()),
        "spark.hadoop.fs.s3a.endpoint": env.get("AWS_ENDPOINT_URL_S3", env.get("AWS_ENDPOINT_URL")),
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",  # ministack.REGION
    }
    return _SETTINGS | {key: value for key, value in given.items() if value}


def main() -> NoReturn:
    """Start the JVM and take orders."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.spark.driver")
    parser.add_argument("--java-home", required=True)
    parser.add_argument("--jars", required=True, help="paths, with commas between them")
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # only replies go to the pipe
    os.environ |= {
        "JAVA_HOME": options.java_home,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    Driver(*_start_jvm(_settings(options)), replies).serve()


if __name__ == "__main__":
    main()
