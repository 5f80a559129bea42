"""The local Spark driver executes job runs in one warm JVM, apart from each other."""

import itertools
import json
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from infra.local.emr.drivers import Driver
from infra.local.jars import (
    spark_jars,
)
from infra.local.java import (
    java_home,
)
from tests.contract.aws import ACCOUNT
from tests.fakes.damaged_parquet import written
from tests.unit.contract.contract_texts import contract_text
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.spark

AWS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
SESSION = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()\n"


def command() -> list[str]:
    """Return the command of a driver."""
    java = ["--java-home", str(java_home()), "--jars", spark_jars()]
    return [sys.executable, "-m", "infra.local.spark.driver", *java]


@dataclass(frozen=True)
class Ended:
    """The result of a run."""

    said: dict[str, Any]
    stdout: str
    stderr: str

    @property
    def found(self) -> Any:
        """Return the run's output as JSON."""
        assert self.said.get("exit") == 0, self.stderr
        return json.loads(self.stdout)


@dataclass
class Bench:
    """A driver, restarted if it died, and a directory for the runs' files."""

    directory: Path
    driver: Driver | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def ready_driver(self) -> Driver:
        """Return a driver that is alive."""
        if not self.driver or not self.driver.is_alive:
            self.driver = Driver(command(), self.directory / "driver")
        return self.driver

    def start(self, script: str, *arguments: str, **more: Any) -> str:
        """Start a run of this Python text, wait until it has begun, and return its id."""
        order = self.order(script, *arguments, **more)
        self.ready_driver().tell(order)
        assert self.said(order["run"]) == {"run": order["run"]}
        return order["run"]

    def order(self, script: str, *arguments: str, **more: Any) -> dict[str, Any]:
        """Return a driver's order for this Python text, after the begin of a session."""
        run = f"run-{next(self.numbers)}"
        (self.directory / f"{run}.py").write_text(SESSION + textwrap.dedent(script))
        order = {"run": run, "entry_point": str(self.directory / f"{run}.py"), "py_files": []}
        order |= {name: str(self.directory / f"{run}.{name}") for name in ("stdout", "stderr")}
        told = {"environment": AWS, "executor_environment": AWS}
        return {**order, "arguments": list(arguments), "conf": {}, **told, **more}

    def said(self, run: str) -> dict[str, Any]:
        """Return the driver's next message about the run."""
        return self.ready_driver().answer(run, time.monotonic() + PATIENCE)

    def output(self, run: str, stream: str) -> str:
        """Return the run's output so far."""
        return (self.directory / f"{run}.{stream}").read_text()

    def run(self, script: str, *arguments: str, **more: Any) -> Ended:
        """Run this Python text to its end and return the result."""
        run = self.start(script, *arguments, **more)
        said = self.said(run)
        return Ended(said, self.output(run, "stdout"), self.output(run, "stderr"))

    def package(self, name: str, text: str) -> str:
        """Return an archive of the module `job` for `--py-files`."""
        path = self.directory / name / "job.zip"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("job.py", text)
        return str(path)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """Yield an S3 at the address in AWS's variables."""
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, s3: str) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("spark"))
    yield bench
    if bench.driver:
        bench.driver.kill()


def test_a_run_is_executed_as_spark_submit_would(bench: Bench) -> None:
    """The entry point is __main__ and has its arguments and a session with its settings.

    Whatever zone the machine is in, the JVM is in UTC, so that ORC's times stay.
    """
    ended = bench.run(
        """if __name__ == "__main__":
            import json, sys
            names = ("spark.mine", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
            zone = spark._jvm.java.util.TimeZone.getDefault().getID()
            hadoop = spark._jsparkSession.sessionState().newHadoopConf().get("fs.mine")
            print(json.dumps([sys.argv[1:], zone, hadoop, *map(spark.conf.get, names)]))""",
        "a b",
        "{}",
        conf={
            "spark.mine": "x=y",
            "spark.sql.shuffle.partitions": "7",
            "spark.hadoop.fs.mine": "yes",
        },
    )
    assert ended.found == [["a b", "{}"], "UTC", "yes", "x=y", "UTC", "7"]
    assert ended.said["details"] == ""


LEAVE_EVERYTHING = """
    import json, logging, os, sys
    sys.path.insert(0, "/left"); sys.argv.append("left"); os.environ["LEFT"] = "1"; os.chdir("/")
    logging.basicConfig(level=logging.DEBUG); json.left = True
    spark.conf.set("spark.left", "1")
    spark.conf.set("spark.sql.catalog.left", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.left.type", "hadoop")
    spark.conf.set("spark.sql.catalog.left.warehouse", sys.argv[1])
    spark.sql("CREATE NAMESPACE left.db")
    spark.sql("CREATE DATABASE left_database")
    spark.range(1).createOrReplaceTempView("left_view")
    spark.range(1).createOrReplaceGlobalTempView("left_global_view")
    spark.range(1).cache().count()
    spark.sparkContext.setJobDescription("left")
"""
FIND_EVERYTHING = """
    import json, logging, os, sys
    names = [row[0] for row in spark.sql("SHOW CATALOGS").collect()]
    names += [row[0] for row in spark.sql("SHOW DATABASES").collect()]
    names += [table.name for table in spark.catalog.listTables()]
    names += [table.name for table in spark.catalog.listTables("global_temp")]
    print(json.dumps({
        "process": [sys.argv[1:], "/left" in sys.path, os.environ.get("LEFT"), os.getcwd() == "/"],
        "modules": [len(logging.getLogger().handlers), hasattr(json, "left")],
        "settings": spark.conf.get("spark.left", None),
        "job": spark.sparkContext.getLocalProperty("spark.job.description"),
        "names": names,
    }))
"""


@pytest.mark.parametrize("ending", ["", "    spark.stop()", "    raise ValueError"])
def test_a_run_leaves_nothing_to_the_next(bench: Bench, tmp_path: Path, ending: str) -> None:
    """Settings, tables and modules of a run are gone in the next one, however it ended."""
    left = bench.run(LEAVE_EVERYTHING + ending, str(tmp_path))
    assert left.said["exit"] == (1 if "raise" in ending else 0), left.stderr
    assert bench.run(FIND_EVERYTHING).found == {
        "process": [[], False, None, False],
        "modules": [0, False],
        "settings": None,
        "job": None,
        "names": ["spark_catalog", "default"],
    }


def test_runs_do_not_fill_the_jvm(bench: Bench) -> None:
    """After a run the JVM has no more objects and listeners than before it."""
    script = """import gc, time
for n in range(100):
    spark.range(n)
gc.collect()  # else the number depends on when Python frees its references
bindings = spark.sparkContext._gateway.java_gateway_server.getGateway().getBindings()
patience = time.monotonic() + 60
while bindings.size() > 100 and time.monotonic() < patience:
    time.sleep(0.1)  # a thread of its own tells the JVM of each
print([bindings.size(), spark._jsc.sc().listenerBus().listeners().size()])"""
    first, second, third = (bench.run(script).found for _ in range(3))
    assert second[1] == third[1] == first[1]
    assert max(first[0], second[0], third[0]) <= 100


@pytest.mark.parametrize(
    ("script", "code", "details"),
    [
        ("raise SystemExit", 0, ""),
        ("import sys; sys.exit(3)", 3, "SystemExit: 3"),
        ("import sys; sys.exit('no')", 1, "SystemExit: no"),
        ("raise KeyError('k')", 1, "KeyError: 'k'"),
        ("raise ValueError('one\\ntwo\\nthree')", 1, "ValueError: one two"),
        ("def", 1, "SyntaxError: invalid syntax"),
        ("import lakegate", 1, "ModuleNotFoundError"),  # the checkout is none of a run's files
        ("spark.table('none')", 1, "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]"),
    ],
)
def test_the_exit_code_is_pythons_own(bench: Bench, script: str, code: int, details: str) -> None:
    """A run ends with Python's exit code and reports the exception."""
    ended = bench.run(script)
    assert ended.said["exit"] == code
    assert ended.said["details"].startswith(details)


def test_each_run_has_its_own_output(bench: Bench) -> None:
    """Each run has its stdout and stderr, with its traceback and the JVM's output."""
    ended = bench.run(
        """import sys
spark._jvm.java.lang.System.err.println("from the JVM")
print("out"); print("err", file=sys.stderr)
raise ValueError("the end")"""
    )
    assert ended.stdout == "out\n"
    for text in ("from the JVM", "err\n", "Traceback", "ValueError: the end"):
        assert text in ended.stderr


def test_runs_have_only_their_own_modules(bench: Bench) -> None:
    """Two runs with modules of the same name each get their own, also in Spark's workers."""
    script = """import json, job
from pyspark.sql.functions import udf
def echo(_):
    import job
    return job.VERSION
rows = spark.range(1).select(udf(echo)("id")).collect()
print(json.dumps([job.VERSION, rows[0][0]]))"""
    for version in ("one", "two", "one again"):
        files = [bench.package(version, f"VERSION = {version!r}")]
        assert bench.run(script, py_files=files).found == [version, version]
    assert "ModuleNotFoundError" in bench.run(script).said["details"]


def test_s3_and_iceberg_are_there(bench: Bench, s3: str, tmp_path: Path) -> None:
    """s3:// addresses are the local S3's; a catalog in the settings works, with Iceberg's SQL."""
    boto3.client("s3", endpoint_url=s3, **ACCOUNT).create_bucket(Bucket="lake")
    conf = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path),
    }
    ended = bench.run(
        """spark.range(5).write.parquet("s3://lake/a b/ü")
spark.sql("CREATE TABLE lake.db.t (id BIGINT) USING iceberg")
spark.read.parquet("s3://lake/a b/ü").writeTo("lake.db.t").append()
spark.sql("ALTER TABLE lake.db.t CREATE BRANCH audit")
print(spark.table("lake.db.t.branch_audit").count())""",
        conf=conf,
    )
    assert ended.found == 5


def test_a_cancel_ends_the_spark_job(bench: Bench) -> None:
    """A run that is cancelled in a Spark job fails at once and runs its clean-up."""
    run = bench.start(
        """print("running", flush=True)
try:
    spark.range(10**15).selectExpr("sum(id % 7)").collect()
finally:
    print("cleaned up")"""
    )
    eventually(lambda: "running" in bench.output(run, "stdout"))
    eventually(lambda: _cancelled(bench, run))
    assert bench.output(run, "stdout") == "running\ncleaned up\n"


def _cancelled(bench: Bench, run: str) -> bool:
    bench.ready_driver().tell({"cancel": run})  # again: the job may not have begun before
    try:
        said = bench.ready_driver().answer(run, time.monotonic() + 0.5)
    except TimeoutError:
        return False
    assert said["exit"] == 1
    assert "SPARK_JOB_CANCELLED" in said["details"]
    return True


SLOW_PATTERN = """
import sys
from pathlib import Path
sys.path.insert(0, {checkout!r})
from infra.local.contract_test import Landed, LocalBranch, local_session, spec_of
from lakegate.contract.model import parse
from lakegate.limits import Limits
from spark_jobs.run.ingest import ingest
contract, file, home = parse({contract!r}, "a.yaml"), Path({file!r}), Path({home!r})
spec = spec_of(contract, file, Limits(longest_stall=5))
ingest(spec, Landed(file, contract, home), local_session(spark, spec, home), LocalBranch())
"""


def test_a_pattern_that_takes_forever_ends_its_file(bench: Bench, tmp_path: Path) -> None:
    """A file on which Java searches without end is ended in time, and the reason names patterns.

    The next run has another driver, if the task still spins by then.
    """
    column = "- {name: a, logicalType: string, logicalTypeOptions: {pattern: '%s'}}"
    text = contract_text(column % r"^(?!x)(\w{1,50} ?){1,20}!$")
    file = tmp_path / "file.parquet"
    file.write_bytes(written({"id": [1], "a": ["a" * 99 + "?"]}))
    places = {"checkout": str(Path(__file__).parents[2]), "file": str(file), "home": str(tmp_path)}
    ended = bench.run(SLOW_PATTERN.format(contract=text, **places))
    assert ended.said["exit"] == 1
    assert "TIMED_OUT" in ended.stderr
    assert "a pattern of the contract" in ended.stderr
    assert bench.run("print(spark.range(3).count())").found == 3


def test_a_jvm_that_dies_takes_the_driver_with_it(bench: Bench) -> None:
    """If the JVM dies, the driver reports it and ends, with all that may still run."""
    ended = bench.run("spark._jvm.java.lang.System.exit(3)")
    assert "its JVM ended with exit code 3" in ended.said["lost"]
    eventually(lambda: bench.driver and not bench.driver.is_alive)


def test_a_run_has_so_much_memory_beside_the_jvm(bench: Bench) -> None:
    """A run is killed once its own process takes more, as a worker of EMR Serverless is.

    The driver reports it, as any other end by a signal.
    """
    script = "import time; held = bytearray({0}); held[::4096] = bytes(len(held) // 4096); {1}"
    fits = bench.run(script.format(64 << 20, "print(spark.range(3).count())"), beside=1 << 30)
    assert fits.found == 3
    ended = bench.run(script.format(1 << 30, "time.sleep(60)"), beside=512 << 20)
    assert "process was killed by signal 9" in ended.said["lost"]
    assert "beside the JVM" in ended.stderr


def test_a_driver_ends_with_the_service(bench: Bench, tmp_path: Path) -> None:
    """A driver ends with its standard input, even during a run, with all that it started."""
    order = bench.order("import os, time\nprint(os.getpid())\ntime.sleep(600)")
    with subprocess.Popen(
        command(), stdin=subprocess.PIPE, cwd=tmp_path, start_new_session=True, text=True
    ) as driver:
        print(json.dumps(order), file=driver.stdin, flush=True)
        Path(order["stdout"]).touch()
        eventually(lambda: bench.output(order["run"], "stdout"))
    eventually(lambda: _group_is_gone(driver.pid))


def _group_is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False
