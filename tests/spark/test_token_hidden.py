"""Spark writes no token to its event log, its own log or a failed query."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.local.jars import (
    spark_jars,
)
from infra.local.java import (
    java_home,
)
from lakegate import nessie_tokens
from lakegate.nessie_tokens import Keys
from tests.fakes import wire
from tests.leaks import files, leaks, secrets_of
from tests.unit.adapters.test_tokens import spec

pytestmark = pytest.mark.spark

_JOB = """
import sys
from pyspark.sql import SparkSession
from lakegate.job.jobspec import JobSpec
from spark_jobs.spark.session import open_session

_, told, token, jars, events = sys.argv
settings = {
    "spark.master": "local[1]", "spark.jars": jars, "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": events,
    "spark.eventLog.compress": "false",
}
builder = SparkSession.builder
for name, value in settings.items():
    builder = builder.config(name, value)
builder.getOrCreate().sparkContext.setLogLevel("INFO")
spark = open_session(JobSpec.from_argument(told), token)
print(spark.range(3).selectExpr("sum(id)").collect())
try:
    spark.sql("SELECT * FROM lake.a.b").show()
except Exception as error:
    print("as it should be:", error)
spark.stop()
"""


def test_spark_writes_no_token_down(tmp_path: Path) -> None:
    """Spark hides the token at log level INFO, with an event log and a catalog that refuses.

    Spark hides settings whose names look like tokens; ours must stay among them.
    """
    held, events = Keys.of(nessie_tokens.due({}, datetime.now(UTC))), tmp_path / "events"
    events.mkdir()
    environment = {**os.environ, "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with wire.answering(refusal) as nessie, (tmp_path / "log").open("wb") as log:
        told = (spec(nessie).to_argument(), held.tokens["job"], spark_jars(), events.as_uri())
        command = (sys.executable, "-c", _JOB, *told)
        run = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False)

    text = (tmp_path / "log").read_text(errors="replace")
    assert run.returncode == 0, text[-2000:]
    assert "NotAuthorizedException" in text
    written = b"".join(content for _, content in files(events))
    assert b"spark.sql.catalog.lake.uri" in written
    assert leaks(files(tmp_path), secrets_of([held], {})) == []
