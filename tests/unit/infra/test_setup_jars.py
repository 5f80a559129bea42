"""The cache of jars has only complete files with their pinned sums."""

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from xml.etree import ElementTree as ET

import pytest

from infra.local import jars
from infra.versions import Jar
from lakegate.errors import Permanent, Transient


def pinned(name: str, content: bytes = b"right") -> Jar:
    return Jar("org.example", name, "1.0", hashlib.sha256(content).hexdigest())


ONE, TWO = pinned("one"), pinned("two")


class Server:
    """A server of jars; it serves `content` and records requests."""

    def __init__(self, content: bytes = b"right") -> None:
        self.content = content
        self.asked: list[str] = []

    def resolve(self, wanted: Iterable[Jar], directory: Path) -> None:
        for jar in wanted:
            self.asked.append(jar.name)
            (directory / jar.file_name).write_bytes(self.content)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_only_missing_and_corrupt_jars_are_downloaded(tmp_path: Path) -> None:
    """The cache then has the jars alone, and a complete one downloads nothing."""
    server, cache = Server(), tmp_path / "cache"
    assert jars.ensure([ONE], cache, server.resolve) == [ONE]
    assert jars.ensure([ONE, TWO], cache, server.resolve) == [TWO]
    (cache / ONE.file_name).write_bytes(b"rotten")
    assert jars.ensure([ONE, TWO], cache, server.resolve) == [ONE]
    assert jars.ensure([ONE, TWO], cache, server.resolve) == []
    assert server.asked == ["one", "two", "one"]
    assert files(cache) == {"one-1.0.jar": b"right", "two-1.0.jar": b"right"}


def test_corrupt_jar_does_not_stay(tmp_path: Path) -> None:
    """A corrupt jar is deleted even if the download fails, so that nothing starts with it."""

    def unreachable(_wanted: Iterable[Jar], _directory: Path) -> None:
        raise Transient("jars_unreachable", "no network")

    (tmp_path / ONE.file_name).write_bytes(b"rotten")
    with pytest.raises(Transient):
        jars.ensure([ONE], tmp_path, unreachable)
    assert files(tmp_path) == {}


def test_wrong_file_is_refused(tmp_path: Path) -> None:
    """A download with another sum is deleted; the error names the file and both sums."""
    other = pinned("other", b"forged")
    with pytest.raises(Permanent) as refused:
        jars.ensure([ONE, other], tmp_path, Server(b"forged").resolve)
    message = refused.value.message
    assert "one-1.0.jar" in message
    assert ONE.sha256 in message
    assert hashlib.sha256(b"forged").hexdigest() in message
    assert "make setup" in message
    assert files(tmp_path) == {"other-1.0.jar": b"forged"}, "the jar that was right is kept"


def test_jar_that_never_came_is_an_error(tmp_path: Path) -> None:
    """An answer without the file is an error."""
    with pytest.raises(Permanent, match=r"one-1\.0\.jar"):
        jars.ensure([ONE], tmp_path, lambda _wanted, _directory: None)


def test_interrupted_fetch_leaves_no_half_file(tmp_path: Path) -> None:
    """An interrupted download leaves nothing, and the next one removes what a killed one left."""

    def interrupted(wanted: Iterable[Jar], directory: Path) -> None:
        (directory / ONE.file_name).write_bytes(b"ri")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jars.ensure([ONE], tmp_path, interrupted)
    assert files(tmp_path) == {}
    (tmp_path / ".fetching-abc" / "of a killed one").mkdir(parents=True)
    jars.ensure([ONE], tmp_path, Server().resolve)
    assert files(tmp_path) == {"one-1.0.jar": b"right"}


def test_two_clones_at_once_fetch_once(tmp_path: Path) -> None:
    """Of clones that set up at the same time one downloads, and all find every jar."""
    server, together = Server(), Barrier(4)

    def clone() -> None:
        together.wait()
        jars.ensure([ONE, TWO], tmp_path, server.resolve)
        assert files(tmp_path).keys() >= {ONE.file_name, TWO.file_name}

    with ThreadPoolExecutor(4) as clones:
        for done in [clones.submit(clone) for _ in range(4)]:
            done.result()
    assert sorted(server.asked) == ["one", "two"]


def test_ivy_is_asked_for_each_jar_alone() -> None:
    """The Ivy file has every jar's coordinates with its classifier, and nothing else."""
    runner = Jar("org.example", "server", "2.0", "0" * 64, classifier="runner")
    root = ET.fromstring(jars.ivy_module([ONE, runner]))  # noqa: S314  (our own text)
    assert [(each.get("name"), each.get("rev")) for each in root.iter("dependency")] == [
        ("one", "1.0"),
        ("server", "2.0"),
    ]
    assert {each.get("transitive") for each in root.iter("dependency")} == {"false"}
    classifier = "{http://ant.apache.org/ivy/maven}classifier"
    assert [artifact.get(classifier) for artifact in root.iter("artifact")] == [None, "runner"]
