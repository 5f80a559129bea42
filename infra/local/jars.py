"""Download the jars of Spark and Nessie once a machine and check them against their pinned sums.

They lie in a cache that every clone shares. Each is downloaded under another name, under a lock,
checked, and then renamed.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.sax.saxutils import quoteattr

from infra.local.java import java_home
from infra.setup import only_one
from infra.versions import JARS, NESSIE_JAR, SPARK_JARS, Jar
from lakegate.errors import Permanent, Transient

# Downloads the files of these jars into that directory.
Resolve = Callable[[Iterable[Jar], Path], None]

# Debian's trust store also has the authorities that the machine's owner added.
_TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")


def cache() -> Path:
    """Return the directory of the jars, which all clones of this user share."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lakegate" / "jars"


def spark_jars() -> str:
    """Return the paths of a local Spark's jars with commas between them, for `spark.jars`.

    Downloads them if one is absent. Raises what `ensure` raises.
    """
    if not all((cache() / jar.file_name).is_file() for jar in SPARK_JARS):
        ensure(SPARK_JARS, cache(), ivy)
    return ",".join(str(cached(jar)) for jar in SPARK_JARS)


def nessie_jar() -> Path:
    """Return the jar of Nessie's server."""
    return cached(NESSIE_JAR)


def cached(jar: Jar) -> Path:
    """Return a jar's file in the cache. Raises Permanent if set-up has not downloaded it."""
    path = cache() / jar.file_name
    if not path.is_file():
        raise Permanent("jar_missing", f"{path} is not there: run `make setup`")
    return path


def ensure(jars: Iterable[Jar], directory: Path, resolve: Resolve) -> list[Jar]:
    """Download the missing jars into the directory and return them.

    Raises Permanent if a file does not have its pinned sum, and what `resolve` raises.
    """
    if not _wrong(jars, directory):
        return []
    directory.mkdir(parents=True, exist_ok=True)
    with only_one(directory):
        wrong = _wrong(jars, directory)  # another clone may have downloaded them meanwhile
        for jar in wrong:
            (directory / jar.file_name).unlink(missing_ok=True)
        if wrong:
            _fetch(wrong, directory, resolve)
    return wrong


def _wrong(jars: Iterable[Jar], directory: Path) -> list[Jar]:
    """Return the jars that are absent there or have another sum."""
    every = list(jars)
    with ThreadPoolExecutor() as threads:
        sums = list(threads.map(lambda jar: _sum(directory / jar.file_name), every))
    return [jar for jar, digest in zip(every, sums, strict=True) if digest != jar.sha256]


def _fetch(jars: list[Jar], directory: Path, resolve: Resolve) -> None:
    for leftover in directory.glob(".fetching-*"):  # of a download that was killed
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=directory) as work:
        resolve(jars, Path(work))
        wrong = _wrong(jars, Path(work))
        for jar in jars:
            if jar not in wrong:
                (Path(work) / jar.file_name).replace(directory / jar.file_name)
        if wrong:
            raise _refusal(wrong[0], Path(work))


def _refusal(jar: Jar, directory: Path) -> Permanent:
    return Permanent(
        "jar_wrong",
        f"{jar.file_name} has another content than expected and was deleted.\n"
        f"  SHA-256 expected: {jar.sha256}\n"
        f"  SHA-256 found:    {_sum(directory / jar.file_name)}\n"
        "Run `make setup` again. If the sum differs again, the file was changed at its source or\n"
        "in transit: do not use it. If you changed a version in infra/versions.py, change its sum.",
    )


def _sum(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    if not path.is_file():
        return "no such file"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ivy_module(jars: Iterable[Jar]) -> str:
    """Return the Ivy file for these jars without their dependencies."""
    dependencies = "\n".join(_dependency(jar) for jar in jars)
    return f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="lakegate" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _dependency(jar: Jar) -> str:
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    return (
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)}"
        f' rev={quoteattr(jar.version)} transitive="false" conf="default->default">\n'
        f'      <artifact name={quoteattr(jar.name)} type="jar" ext="jar"{classifier}/>\n'
        f"    </dependency>"
    )


def ivy(jars: Iterable[Jar], directory: Path) -> None:
    """Download jars with pyspark's Ivy. Raises Transient."""
    print("Fetching the jars of Spark and Nessie ...", file=sys.stderr, flush=True)
    (directory / "ivy.xml").write_text(ivy_module(jars), encoding="utf-8")
    trust = [f"-Djavax.net.ssl.trustStore={_TRUST_STORE}"] if _TRUST_STORE.is_file() else []
    command = [str(java_home() / "bin" / "java"), *trust]
    command += [f"-Divy.default.ivy.user.dir={directory.resolve()}", "-cp", str(_ivy_jar())]
    command += ["org.apache.ivy.Main", "-warn", "-ivy", "ivy.xml", "-cache", "cache"]
    command += ["-retrieve", "[artifact]-[revision](-[classifier]).[ext]"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise Transient(
            "jars_unreachable",
            f"{said}\nThe jars could not be fetched; Ivy says above why. Is the network there?",
        )


def _ivy_jar() -> Path:
    spark = importlib.util.find_spec("pyspark")  # located, not imported: an import takes a second
    if not spark or not spark.origin:
        raise Permanent("pyspark_missing", "pyspark is not installed: run `make setup`")
    (jar,) = (Path(spark.origin).parent / "jars").glob("ivy-*.jar")
    return jar


def main() -> int:
    """Check the Java runtime and download missing jars; set-up runs this."""
    try:
        java_home()
        ensure(JARS, cache(), ivy)
    except (Permanent, Transient) as error:
        print(error.message, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # Ctrl-C needs no message
    return 0


if __name__ == "__main__":
    sys.exit(main())
