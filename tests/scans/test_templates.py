"""What CloudFormation gets is scanned by checkov, whose findings have a written exception each."""

import json
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import release, template

ROOT = Path(__file__).parents[2]
CHECKOV = ROOT / ".venv-scan" / "bin" / "checkov"
EXCEPTIONS = Path(__file__).with_name("exceptions.yml")

Found = tuple[str, str]  # a check, and template/LogicalId or a pattern of it


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> set[Found]:
    """Return what checkov finds; it asks no server, and gets no home and no account."""
    folder, home = tmp_path_factory.mktemp("templates"), tmp_path_factory.mktemp("home")
    policies = {file.stem: template.read(file) for file in ROOT.glob("infra/policies/*.yml")}
    for name, body in (release.templates() | policies).items():
        (folder / f"{name}.json").write_text(json.dumps(body, default=str))
    options = ["--framework", "cloudformation", "--skip-download", "--soft-fail", "--compact"]
    command = [str(CHECKOV), "--directory", str(folder), "--output", "json", *options]
    told = subprocess.run(command, check=True, capture_output=True, env={"HOME": str(home)})
    report = json.loads(told.stdout)
    assert report["summary"]["parsing_errors"] == 0
    checked = {_place(each).split("/")[0] for each in report["results"]["passed_checks"]}
    assert checked >= {"lakegate", "lakegate-platform"}
    return {(each["check_id"], _place(each)) for each in report["results"]["failed_checks"]}


def _place(check: dict[str, Any]) -> str:
    return f"{Path(check['file_path']).stem}/{check['resource'].rpartition('.')[2]}"


def test_every_finding_has_its_exception(findings: set[Found]) -> None:
    """What checkov finds is repaired, or tests/scans/exceptions.yml says why it stays."""
    known = list(_exceptions())
    assert {each for each in findings if not any(_covers(e, each) for e in known)} == set()


def test_every_exception_has_its_finding(findings: set[Found]) -> None:
    """An exception that nothing needs any more would hide the next finding."""
    assert {e for e in _exceptions() if not any(_covers(e, each) for each in findings)} == set()


def _covers(exception: Found, finding: Found) -> bool:
    return exception[0] == finding[0] and fnmatchcase(finding[1], exception[1])


def _exceptions() -> Iterator[Found]:
    for check, exception in yaml.safe_load(EXCEPTIONS.read_text()).items():
        assert exception["reason"], check
        yield from ((check, resource) for resource in exception["resources"])
