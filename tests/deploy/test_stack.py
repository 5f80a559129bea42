"""The whole local stack: start, stop, and a user's actions between them."""

import json
import os
import re
import signal
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest
import requests

from functions.settings import Settings
from infra import lambda_python, package
from infra.local import ministack, processes, stack, stack_file
from infra.local.parts import NAMES
from infra.local.stack_file import Stack
from lakegate.errors import LakegateError
from lakegate.nessie_tokens import ROLES
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

_ROOT = Path(__file__).parents[2]
_PYTHON = _ROOT / lambda_python.ENVIRONMENT / "bin" / "python"  # which runs the functions here


class Local:
    """A running stack, and the messages of its start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.told: list[str] = []
        self.pushed: list[Mapping[str, str]] = []

    def up(self) -> Stack:
        self.told.clear()
        return stack.up(self.home, _ROOT, self.pushed.append, self.told.append)

    def health(self) -> dict[str, str]:
        return stack.health(self.home, _ROOT)

    def pids(self) -> dict[str, int]:
        found = {name: processes.running(self.home, name) for name in NAMES}
        return {name: record.pid for name, record in found.items() if record}

    def ask(self, role: str, method: str, path: str, content: object = None) -> requests.Response:
        """Send a request to the catalog in a role."""
        token = (self.home / "keys" / f"{role}.token").read_text()
        return requests.request(
            method,
            f"{stack_file.read(self.home).nessie}/api/v2/trees{path}",
            headers={"Authorization": f"Bearer {token}"},
            json=content,
            timeout=PATIENCE,
        )

    def main(self) -> dict[str, str]:
        """Return main and its hash."""
        return dict(self.ask("reader", "GET", "/main").json()["reference"])


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    local = Local(tmp_path_factory.mktemp("home"))
    try:
        local.up()
        yield local
    finally:
        stack.down(local.home, local.told.append)


def built() -> package.Package:
    """Return the package that the local stack runs."""
    return package.build_here(_ROOT, print)


def commit(message: str) -> dict[str, object]:
    """Return a commit for Nessie that creates a namespace named like its message."""
    name = {"elements": [message]}
    put = {"type": "PUT", "key": name, "content": {"type": "NAMESPACE", **name}}
    return {"commitMeta": {"message": message, "authors": ["test"]}, "operations": [put]}


def test_every_part_is_up_when_up_returns(local: Local) -> None:
    """Every part is up once `up` has returned."""
    assert local.health() == dict.fromkeys(NAMES, "up")


def test_the_settings_are_complete(local: Local) -> None:
    """The settings that `up` writes are sufficient for the functions' own code."""
    written = stack_file.read(local.home)

    assert Settings.of(written.env).lake_bucket == written.lake_bucket
    assert written.env["AWS_ENDPOINT_URL"] == written.s3
    assert local.pushed[-1] == written.env


def test_the_packaged_functions_run(local: Local) -> None:
    """The zip has all imports of the functions, and their role all permissions of a sweep."""
    written = stack_file.read(local.home)
    answer = ministack.client("lambda", written.s3).invoke(
        FunctionName=written.functions["sweep"], Payload=b"{}"
    )

    assert b'"failed": 0' in answer["Payload"].read()


def test_the_zip_fits_lambda(local: Local) -> None:
    """The zip is small enough, and its libraries need no newer glibc than Lambda's."""
    with zipfile.ZipFile(built().lambda_zip) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        libraries = {n: archive.read(n) for n in archive.namelist() if ".so" in n}
    needed = {
        name: max(map(int, re.findall(rb"GLIBC_2\.(\d+)", library)))
        for name, library in libraries.items()
    }

    assert size < 250_000_000
    assert needed
    assert max(needed.values()) <= 34, needed


def test_the_zip_has_all_that_the_functions_import(local: Local, tmp_path: Path) -> None:
    """The functions import only Python itself and the zip, boto3 included."""
    with zipfile.ZipFile(built().lambda_zip) as archive:
        archive.extractall(tmp_path)
    modules = [f"functions.{file.stem}" for file in (tmp_path / "functions").glob("*.py")]
    code = f"""
import importlib, json, sys
sys.path.insert(0, {str(tmp_path)!r})
for name in {modules!r}:
    importlib.import_module(name)
files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
print(json.dumps([f.rpartition("site-packages/")[2] for f in files if "site-packages/" in f]))
"""
    run = subprocess.run(
        [_PYTHON, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    elsewhere = {file.split("/")[0] for file in json.loads(run.stdout)}

    assert elsewhere <= {"_distutils_hack", "_virtualenv.py"}


def test_a_second_up_leaves_what_runs_alone(local: Local) -> None:
    """`up` on a running stack reports that it runs, and restarts no part."""
    before = local.pids()

    local.up()

    assert local.pids() == before
    assert [told for told in local.told if told.startswith("starting")] == []
    assert len([told for told in local.told if told.endswith("is running already")]) == len(NAMES)


def test_a_part_that_died_is_started_again(local: Local) -> None:
    """`up` restarts a dead part at its old address and leaves the others unchanged."""
    before, address = local.pids(), stack_file.read(local.home).slack
    os.kill(before["slack"], signal.SIGKILL)
    eventually(lambda: local.health()["slack"] == "down")

    local.up()

    after = local.pids()
    assert local.health() == dict.fromkeys(NAMES, "up")
    assert after.pop("slack") != before.pop("slack")
    assert after == before
    assert stack_file.read(local.home).slack == address


def test_only_the_publisher_changes_main(local: Local) -> None:
    """This Nessie also has the rules: only the publisher's role may commit to main.

    tests/contract/test_roles.py tries every role with every operation.
    """
    path = f"/main@{local.main()['hash']}/history/commit"
    answers = {role: local.ask(role, "POST", path, commit(role)).status_code for role in ROLES}

    assert answers == {role: 200 if role == "publisher" else 403 for role in ROLES}


def test_an_interrupted_up_leaves_nothing_running(tmp_path: Path, local: Local) -> None:
    """Ctrl-C during `up` stops every part that it started, and no part of another stack."""

    def interrupt(_: Mapping[str, str]) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stack.up(tmp_path, _ROOT, interrupt, local.told.append)

    assert Local(tmp_path).pids() == {}
    assert set(local.pids()) == set(NAMES)


def test_a_checkout_or_a_home_that_is_not_set_up_is_reported(tmp_path: Path) -> None:
    """No part is started, and the error names the command to run."""
    with pytest.raises(LakegateError, match="make setup"):
        stack.up(tmp_path / "home", tmp_path, lambda _: None, lambda _: None)
    with pytest.raises(LakegateError, match="lakegate up"):
        stack_file.read(tmp_path)


def test_down_stops_everything_and_up_brings_it_back(local: Local) -> None:
    """`down` stops every part, a second one has no effect, and `up` finds main unchanged."""
    before = local.main()
    stack.down(local.home, local.told.append)
    assert local.health() == dict.fromkeys(NAMES, "down")
    stack.down(local.home, local.told.append)
    assert local.told[-1] == "nothing was running"

    local.up()

    assert local.main() == before
