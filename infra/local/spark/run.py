"""One job run in a process of its own: as by spark-submit, but in a JVM that already runs.

In the JVM the run gets a session that shares only the SparkContext: settings, catalogs, tables,
views and caches are its own, and `SparkSession.builder.getOrCreate()` finds it. `--conf` settings
hold for that session; the SparkContext's own (cores, memory, extensions) are the driver's.
"""

import atexit
import json
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_PROJECT = Path(__file__).parents[3]
# System properties that AWS's clients in the JVM read before the environment, which cannot change.
_PROPERTIES = {
    "AWS_REGION": "aws.region",
    "AWS_ACCESS_KEY_ID": "aws.accessKeyId",
    "AWS_SECRET_ACCESS_KEY": "aws.secretAccessKey",
    "AWS_SESSION_TOKEN": "aws.sessionToken",
}
# Seconds for the tasks of a run that ended to end, too.
_PATIENCE = 5.0
_LOOK = 0.1  # seconds between two looks at this process's memory

Order = dict[str, Any]


def execute(order: Order, report: int) -> int:
    """Execute a run in this process, report how it ended, and return the exit code.

    The report goes to the descriptor `report` as JSON.
    """
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = [order["entry_point"], *order["arguments"]]
    code, details = 0, ""
    try:
        _attach(order)
        threading.Thread(
            target=_watch, args=(order.get("beside", sys.maxsize),), daemon=True
        ).start()
        runpy.run_path(order["entry_point"], run_name="__main__")
    except SystemExit as error:
        code, details = _exit_code(error), f"SystemExit: {error.code}"
    except BaseException as error:  # noqa: BLE001  whatever the job raises, it failed
        traceback.print_exc()
        # a JVM's error has its name in the second line and its stack in the others
        code, details = 1, " ".join(f"{type(error).__name__}: {error}".splitlines()[:2])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # too late for a cancel
    said = {"exit": code, "details": details, **({"leaving": True} if _is_busy() else {})}
    _end_workers(order)
    os.write(report, json.dumps(said).encode())
    return code


def _watch(most: int) -> None:
    """Kill this process once it has more than so many bytes of memory, as a container is killed."""
    own = psutil.Process()
    while (size := own.memory_info().rss) <= most:
        time.sleep(_LOOK)
    print(f"the container is killed: {size:,} bytes of {most:,} beside the JVM", file=sys.stderr)
    own.kill()


def _is_busy() -> bool:
    """Return whether tasks of abandoned jobs still run: some ignore a cancel."""
    context = SparkContext._active_spark_context  # noqa: SLF001
    until = time.monotonic() + _PATIENCE
    while context and any(it.numRunningTasks() for it in _executors(context)):
        if time.monotonic() > until:
            return True
        time.sleep(0.1)
    return False


def _end_workers(order: Order) -> None:
    """End Spark's Python workers with this run's rights: no other run uses them, and they stay."""
    token = order.get("executor_environment", {}).get("AWS_SESSION_TOKEN")
    beside = psutil.Process(os.getppid()).children(recursive=True) if token else ()
    for each in beside:
        with suppress(psutil.Error):
            if "pyspark.daemon" in each.cmdline() and each.environ()["AWS_SESSION_TOKEN"] == token:
                each.kill()


def _executors(context: SparkContext) -> Any:
    return context._jsc.sc().statusTracker().getExecutorInfos()  # noqa: SLF001


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _attach(order: Order) -> None:
    """Give this process a session in the JVM and the run's own modules."""
    gateway = launch_gateway()  # the environment has the JVM's address
    jvm = gateway.jvm
    given = order.get("environment", {})
    os.environ |= given
    for name, property_ in _PROPERTIES.items():
        if name in given:
            jvm.java.lang.System.setProperty(property_, given[name])
        else:
            jvm.java.lang.System.clearProperty(property_)
    names = gateway.java_gateway_server.getGateway().getBindings().keySet()
    atexit.register(names.retainAll, jvm.java.util.HashSet(names))  # free all that the run used
    scala = jvm.org.apache.spark.SparkContext.getOrCreate(jvm.SparkConf())
    context = SparkContext(
        conf=SparkConf(_jconf=scala.getConf()),
        gateway=gateway,
        jsc=jvm.JavaSparkContext(scala),
        # Spark's Python workers stay, but those with other modules or rights are never used again
        environment={
            **order.get("executor_environment", {}),
            "PYTHONPATH": os.pathsep.join(_modules(order)),
        },
    )
    getattr(jvm, "org.apache.spark.sql.classic.SparkSession").clearDefaultSession()
    session = SparkSession(context, options=_options(order["conf"]))
    strange = (str(_PROJECT), str(Path.cwd()), "")
    others = [path for path in sys.path if path not in strange]
    sys.path[:] = [str(Path(order["entry_point"]).parent), *_modules(order), *others]
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=context.cancelAllJobs).start())
    status = session._jsparkSession.sharedState().statusStore()  # noqa: SLF001
    atexit.register(scala.removeSparkListener, status.listener().get())


def _modules(order: Order) -> list[str]:
    """Return the `--py-files` as entries of Python's path: an archive or a module's directory."""
    files = [Path(file) for file in order["py_files"]]
    return [str(file.parent if file.suffix == ".py" else file) for file in files]


def _options(conf: dict[str, str]) -> dict[str, str]:
    """Return the session's settings: Hadoop reads its own without Spark's prefix."""
    prefix = "spark.hadoop."
    hadoop = {k.removeprefix(prefix): v for k, v in conf.items() if k.startswith(prefix)}
    return conf | hadoop
