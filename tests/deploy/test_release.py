"""What a release has besides the wheel."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infra import release
from infra.setup import deploy_environment
from infra.versions import AVRO_JAR
from lakegate.jobspec import LIBRARIES

pytestmark = pytest.mark.deploy


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert deploy_environment(release.ROOT).is_current(), "run `make deploy-tools`"
    into = tmp_path_factory.mktemp("release")
    release.build(into)
    return into


def test_the_functions_bill_names_what_their_zip_has(built: Path) -> None:
    """Each library in the zip is in the bill of materials, in its version, and none else."""
    assert _billed(built / "lambda.cdx.json") == _installed(built / "lambda.zip")


def test_the_jobs_bill_names_what_its_zips_have(built: Path) -> None:
    """The job has its libraries, the YAML of the functions, and a jar."""
    extra = _billed(built / "job.cdx.json") - _installed(built / LIBRARIES)
    assert {name for name, _ in extra} == {"pyyaml", AVRO_JAR.name}


def test_the_wheels_bill_names_what_it_needs(built: Path) -> None:
    """A dependency and one of its own are there, each with a digest, and no tool of ours."""
    bill = json.loads((built / "wheel.cdx.json").read_text())
    names = {each["name"] for each in bill["components"]}
    assert names >= {"pyiceberg", "urllib3"}
    assert not names & {"pytest", "ruff"}
    assert bill["metadata"]["component"]["name"] == "lakegate"


def test_templates_need_neither_sam_nor_this_checkout(built: Path) -> None:
    """CloudFormation alone understands them, and parameters name the functions' code."""
    app, platform = (
        json.loads((built / f"{name}.template.json").read_text())
        for name in ("lakegate", "lakegate-platform")
    )
    assert "Transform" not in app | platform
    functions = [r for r in app["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    code = {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": "CodeKey"}}
    assert functions
    assert all(each["Properties"]["Code"] == code for each in functions)


def _billed(file: Path) -> set[tuple[str, str]]:
    components: list[dict[str, Any]] = json.loads(file.read_text())["components"]
    return {(_plain(each["name"]), each["version"]) for each in components}


def _installed(libraries: Path) -> set[tuple[str, str]]:
    found = re.compile(r"([^/]+)-([^/-]+)\.dist-info/METADATA")
    names = zipfile.ZipFile(libraries).namelist()
    return {(_plain(each[1]), each[2]) for each in map(found.fullmatch, names) if each}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
