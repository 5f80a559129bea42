"""`lakegate doctor` names each problem with its fix, and no problem hides another."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.aws_rules import of_functions, of_stack, rights
from cli.aws_view import FunctionView, StackView
from cli.doctor import DoctorInputs, checks, report
from functions.health.model import Finding, Status, carry_out, fail, ok, warn
from infra.package import Package
from infra.stage import Stage
from lakegate.errors import LakegateError
from tests.fakes.deployment import SETTINGS
from tests.fakes.outside import FakeOutside

CODE = b"a zip"
DIGEST = base64.b64encode(hashlib.sha256(CODE).digest()).decode()
STAGE = Stage("dev", "000000000000", "eu-west-1")
FACTS = {"nessie-uri": SETTINGS.nessie_uri, "emr-application-id": SETTINGS.emr_application_id}
NAMES = (
    *("stack", "platform", "platform's facts", "parameters", "functions", "queues' functions"),
    *("rules", "job's release", "contracts", "Slack", "buttons"),
    *("alarms", "function errors", "waiting messages", "permissions"),
)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """Build what this checkout would deploy."""
    zipped, job = tmp_path / "lambda.zip", tmp_path / "main.py"
    for file in (zipped, job):
        file.write_bytes(CODE)
    return Package(zipped, (job,))


def wanted(role: str, action: str, resource: str) -> bool:
    """Return the expected answers about permissions."""
    found = {(r.role, r.action, r.resource): r.may for r in rights(SETTINGS, STAGE)}
    return found[f"{role.removeprefix('role-')}Role", action, resource]


def inputs(package: Package, **seen: Any) -> DoctorInputs:
    """Return a deployment of the package, with differences."""
    shown: dict[str, Any] = {"sha256": DIGEST, "allows": wanted} | seen
    aws: Any = FakeOutside(**shown)
    release = package.job_release
    return DoctorInputs(
        stage=STAGE,
        settings=replace(SETTINGS, job_code=f"s3://lake/jobs/{release}"),
        aws=aws,
        facts=lambda: FACTS | {"job-release": release},
        parameters=lambda: {"Stage": "dev", "Newer": "x"},
        package=lambda: package,
        contracts=lambda: {"shop.orders": "1"},
        in_force=lambda: {"shop.orders": "1"},
    )


def faults(deployment: DoctorInputs) -> list[Finding]:
    """Return all findings that are not ok."""
    found = carry_out(list(checks(deployment)))
    assert {each.check.partition("' code")[0] for each in found} == set(NAMES)
    wrong = [each for each in found if each.status is not Status.OK]
    assert all(each.fix for each in wrong)
    return wrong


def test_what_is_deployed_as_it_is_here_is_well(package: Package) -> None:
    """An unchanged deployment of this checkout has no problem."""
    assert faults(inputs(package)) == []


@pytest.mark.parametrize(
    ("seen", "check", "status", "message", "fix"),
    [
        ({"status": "ROLLBACK_COMPLETE"}, "stack", Status.FAIL, "ROLLBACK", "events"),
        ({"status": ""}, "stack", Status.FAIL, "there is no lakegate-dev", "lakegate deploy"),
        ({"platform": "UPDATE_FAILED"}, "platform", Status.FAIL, "UPDATE_FAILED", "events"),
        ({"sha256": "x"}, "functions' code", Status.WARN, "on-upload, on-alert", "deploy"),
        (
            {"states": {"mapping-1": "Disabled"}},
            "queues' functions",
            Status.FAIL,
            "UploadMapping is Disabled",
            "--enabled --uuid mapping-1",
        ),
        (
            {"states": {"sweep-rule": "DISABLED"}},
            "rules",
            Status.FAIL,
            "SweepRule is DISABLED",
            "enable-rule --name sweep-rule",
        ),
        ({"secrets": set()}, "Slack", Status.FAIL, "the secret slack does not exist", "bot token"),
        (
            {"answered": "NO_SIGNING_SECRET"},
            "buttons",
            Status.FAIL,
            "2 users may press them, but no press",
            '"signing_secret": …} into the secret slack',
        ),
        ({"users": ""}, "buttons", Status.WARN, "no user may press", "`SlackUsers`"),
        ({"answered": "QUEUE_AWAY"}, "buttons", Status.FAIL, "answered QUEUE_AWAY", "on-action"),
        (
            {"ringing": {"lakegate-dev-x": "Look."}},
            "alarms",
            Status.FAIL,
            "-x is in alarm. Look.",
            "trouble",
        ),
        ({"failed": {"on-alert": 2}}, "function errors", Status.WARN, "2 times", "logs tail"),
        (
            {"ages": {"uploads": 1860, "uploads-dead": 99999}},
            "waiting messages",
            Status.WARN,
            "uploads: a message waited 31 minutes",
            "enabled",
        ),
        ({"hidden": {"alarms"}}, "alarms", Status.WARN, "skipped", "permission to read"),
        ({"hidden": {"may"}}, "permissions", Status.WARN, "skipped", "permission to read"),
        (
            {"hidden": {"mapping"}},
            "queues' functions",
            Status.FAIL,
            "cannot be",
            "permission to read",
        ),
    ],
)
def test_a_fault_is_named_with_its_fix(
    package: Package, seen: Mapping[str, Any], check: str, status: Status, message: str, fix: str
) -> None:
    """One problem causes one finding with message and fix."""
    (found,) = faults(inputs(package, **seen))
    assert (found.check, found.status) == (check, status)
    assert message in found.message
    assert fix in found.fix


def test_every_right_is_asked_for(package: Package) -> None:
    """Missing and excess permissions of each role are reported."""
    found = faults(inputs(package, allows=lambda *asked: not wanted(*asked)))
    told = [each.message for each in found]
    assert len(told) == len(rights(SETTINGS, STAGE))
    assert (
        "JobRole may dynamodb:PutItem on arn:aws:dynamodb:eu-west-1:000000000000:table/ledger"
        in told
    )
    assert any(each.startswith("CleanUpRole may not s3:DeleteObject") for each in told)


def test_a_job_of_another_release_is_reported(package: Package) -> None:
    """The finding names the deployed release and this checkout's."""
    deployment = inputs(package)
    old = replace(deployment.settings, job_code="s3://lake/jobs/old")
    told = {**FACTS, "job-release": "old"}
    (found,) = faults(replace(deployment, settings=old, facts=lambda: told))
    assert found.message == f"is old, but {package.job_release} in this checkout"


def test_contracts_that_differ_are_reported(package: Package) -> None:
    """Contracts are reported that differ, are not in force, or are missing here."""
    here, there = {"a.a": "1", "b.b": "1"}, {"a.a": "2", "c.c": "1"}
    found = faults(replace(inputs(package), contracts=lambda: here, in_force=lambda: there))
    assert [each.message for each in found] == [
        "a.a: in force in another version",
        "b.b: not in force",
        "c.c: in force, but not in this checkout",
    ]


def test_a_platform_of_ones_own_is_well(package: Package) -> None:
    """A deployment without the platform's stack has no problem."""
    assert faults(inputs(package, platform="")) == []


def test_a_platform_fact_that_is_not_in_use_is_reported(package: Package) -> None:
    """Missing and changed SSM parameters are reported."""
    told = {"nessie-uri": "http://moved", "job-release": package.job_release}
    found = faults(replace(inputs(package), facts=lambda: told))
    assert [(each.status, each.message) for each in found] == [
        (
            Status.WARN,
            "nessie-uri is http://moved in SSM, but the functions use http://nessie:19120",
        ),
        (Status.FAIL, "SSM has no emr-application-id"),
    ]


def test_parameters_that_differ_are_reported(package: Package) -> None:
    """A differing parameter is reported with both values; one that the stack lacks is not."""
    (found,) = faults(replace(inputs(package), parameters=lambda: {"Stage": "prod", "Newer": "x"}))
    assert found.message == "Stage is dev, but prod in this checkout"


def test_a_package_that_cannot_be_built_hides_nothing(package: Package) -> None:
    """Only the checks that need the package fail if it cannot be built."""

    def refuse() -> Package:
        raise LakegateError("PACKAGING_FAILED", "the libraries cannot be installed")

    found = faults(replace(inputs(package), package=refuse))
    assert [each.check for each in found] == ["functions", "job's release"]


@pytest.mark.parametrize(
    ("stack", "status"),
    [
        ("UPDATE_COMPLETE", Status.OK),
        ("UPDATE_IN_PROGRESS", Status.WARN),
        ("UPDATE_ROLLBACK_COMPLETE", Status.WARN),
        ("UPDATE_ROLLBACK_FAILED", Status.FAIL),
        ("DELETE_FAILED", Status.FAIL),
    ],
)
def test_the_last_deployment_is_judged_by_its_status(stack: str, status: Status) -> None:
    """A rolled back stack is a warning, an unfinished deletion a failure."""
    assert of_stack(StackView("lakegate-dev", stack)).status is status


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"state": "Failed"}, "f is Failed"),
        ({"update": "Failed"}, "last update Failed"),
        ({"runtime": "python3.12"}, "runs python3.12, not python3.11"),
    ],
)
def test_a_function_that_cannot_run_is_reported(wrong: Mapping[str, Any], message: str) -> None:
    """A function that is broken or has the wrong Python version is a failure."""
    good = FunctionView("f", "python3.11", DIGEST, "Active", "Successful")
    (found,) = of_functions([replace(good, **wrong)], CODE)
    assert found.status is Status.FAIL
    assert message in found.message


def test_the_output_shows_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    """The text output shows a fix below each problem and the totals; the exit code is 1."""
    with pytest.raises(typer.Exit) as end:
        report(
            [ok("a", "well"), warn("b", "old", "renew it"), fail("c", "gone", "make it")],
            as_json=False,
        )
    said = capsys.readouterr().out
    assert end.value.exit_code == 1
    assert said.index("✗   c") < said.index("gone") < said.index("→ make it")
    assert said.rstrip().endswith("1 ok, 1 warn, 1 fail")


def test_a_warning_ends_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning alone exits with 0, and JSON has the same fields."""
    report([warn("b", "old", "renew it")], as_json=True)
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found == {"check": "b", "status": "warn", "message": "old", "fix": "renew it"}
