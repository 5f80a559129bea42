"""`lakegate doctor` from outside: each fault is named with its fix, and one hides no other."""

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
from cli.aws_view import FunctionSeen, StackSeen
from cli.doctor import Given, checks, tell
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
    """What this checkout would deploy."""
    zipped, job = tmp_path / "lambda.zip", tmp_path / "main.py"
    for file in (zipped, job):
        file.write_bytes(CODE)
    return Package(zipped, (job,))


def wanted(role: str, action: str, resource: str) -> bool:
    """The rights as they must be."""
    found = {(r.role, r.action, r.resource): r.may for r in rights(SETTINGS, STAGE)}
    return found[f"{role.removeprefix('role-')}Role", action, resource]


def given(package: Package, **seen: Any) -> Given:
    """A deployment of the package, but for what is seen otherwise."""
    shown: dict[str, Any] = {"sha256": DIGEST, "allows": wanted} | seen
    outside: Any = FakeOutside(**shown)
    release = package.job_release
    return Given(
        stage=STAGE,
        settings=replace(SETTINGS, job_code=f"s3://lake/jobs/{release}"),
        outside=outside,
        facts=lambda: FACTS | {"job-release": release},
        parameters=lambda: {"Stage": "dev", "Newer": "x"},
        package=lambda: package,
        contracts=lambda: {"shop.orders": "1"},
        in_force=lambda: {"shop.orders": "1"},
    )


def faults(deployment: Given) -> list[Finding]:
    """What is not well; everything is looked at whatever that is."""
    found = carry_out(list(checks(deployment)))
    assert {each.check.partition("' code")[0] for each in found} == set(NAMES)
    wrong = [each for each in found if each.status is not Status.OK]
    assert all(each.fix for each in wrong)
    return wrong


def test_what_is_deployed_as_it_is_here_is_well(package: Package) -> None:
    """A deployment of this very checkout that nobody changed has no fault."""
    assert faults(given(package)) == []


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
        ({"secrets": set()}, "Slack", Status.FAIL, "no secret slack", "bot token"),
        (
            {"answered": "NO_SIGNING_SECRET"},
            "buttons",
            Status.FAIL,
            "2 may press them, and nothing",
            '"signing_secret": …} into the secret slack',
        ),
        ({"users": ""}, "buttons", Status.WARN, "nobody may press", "`SlackUsers`"),
        ({"answered": "QUEUE_AWAY"}, "buttons", Status.FAIL, "answered QUEUE_AWAY", "on-action"),
        (
            {"ringing": {"lakegate-dev-x": "Look."}},
            "alarms",
            Status.FAIL,
            "-x rings. Look.",
            "trouble",
        ),
        ({"failed": {"on-alert": 2}}, "function errors", Status.WARN, "2 times", "logs tail"),
        (
            {"ages": {"uploads": 1860, "uploads-dead": 99999}},
            "waiting messages",
            Status.WARN,
            "uploads: one waited 31 minutes",
            "enabled",
        ),
        ({"hidden": {"alarms"}}, "alarms", Status.WARN, "skipped", "right to look"),
        ({"hidden": {"may"}}, "permissions", Status.WARN, "skipped", "right to look"),
        ({"hidden": {"mapping"}}, "queues' functions", Status.FAIL, "cannot be", "right to look"),
    ],
)
def test_a_fault_is_named_with_its_fix(
    package: Package, seen: Mapping[str, Any], check: str, status: Status, message: str, fix: str
) -> None:
    """One fault makes one finding, which says what is wrong and what to do."""
    (found,) = faults(given(package, **seen))
    assert (found.check, found.status) == (check, status)
    assert message in found.message
    assert fix in found.fix


def test_every_right_is_asked_for(package: Package) -> None:
    """A right too many and one too few are named, for each role that matters."""
    found = faults(given(package, allows=lambda *asked: not wanted(*asked)))
    told = [each.message for each in found]
    assert len(told) == len(rights(SETTINGS, STAGE))
    assert (
        "JobRole may dynamodb:PutItem on arn:aws:dynamodb:eu-west-1:000000000000:table/ledger"
        in told
    )
    assert any(each.startswith("CleanUpRole may not s3:DeleteObject") for each in told)


def test_a_job_of_another_release_is_told(package: Package) -> None:
    """The deployed release and this checkout's are both named."""
    deployment = given(package)
    old = replace(deployment.settings, job_code="s3://lake/jobs/old")
    told = {**FACTS, "job-release": "old"}
    (found,) = faults(replace(deployment, settings=old, facts=lambda: told))
    assert found.message == f"is old, and this checkout's is {package.job_release}"


def test_contracts_that_differ_are_told(package: Package) -> None:
    """Those in force in another version, not in force, and in force alone."""
    here, there = {"a.a": "1", "b.b": "1"}, {"a.a": "2", "c.c": "1"}
    found = faults(replace(given(package), contracts=lambda: here, in_force=lambda: there))
    assert [each.message for each in found] == [
        "a.a: in force in another version",
        "b.b: not in force",
        "c.c: in force, and not in this checkout",
    ]


def test_a_platform_of_ones_own_is_well(package: Package) -> None:
    """Who has a Nessie and an EMR application need not have our platform's stack."""
    assert faults(given(package, platform="")) == []


def test_what_the_platform_tells_and_is_not_in_use_is_told(package: Package) -> None:
    """A fact that is gone, and one that changed since the functions were deployed."""
    told = {"nessie-uri": "http://moved", "job-release": package.job_release}
    found = faults(replace(given(package), facts=lambda: told))
    assert [(each.status, each.message) for each in found] == [
        (
            Status.WARN,
            "nessie-uri is http://moved now, and the functions work with http://nessie:19120",
        ),
        (Status.FAIL, "SSM has no emr-application-id"),
    ]


def test_parameters_that_differ_are_told(package: Package) -> None:
    """The stack's value and this checkout's; of what the stack does not have nothing is said."""
    (found,) = faults(replace(given(package), parameters=lambda: {"Stage": "prod", "Newer": "x"}))
    assert found.message == "Stage is dev, here prod"


def test_a_package_that_cannot_be_built_hides_nothing(package: Package) -> None:
    """What is held against it cannot be checked; all else is."""

    def refuse() -> Package:
        raise LakegateError("PACKAGING_FAILED", "the libraries cannot be installed")

    found = faults(replace(given(package), package=refuse))
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
def test_how_the_last_deployment_ended(stack: str, status: Status) -> None:
    """Rolled back it runs as before, half way it does not."""
    assert of_stack(StackSeen("lakegate-dev", stack)).status is status


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"state": "Failed"}, "f is Failed"),
        ({"update": "Failed"}, "its last update Failed"),
        ({"runtime": "python3.12"}, "runs python3.12, not python3.11"),
    ],
)
def test_a_function_that_cannot_run_is_told(wrong: Mapping[str, Any], message: str) -> None:
    """A function that is broken, or on another Python than its code, is a fault."""
    good = FunctionSeen("f", "python3.11", DIGEST, "Active", "Successful")
    (found,) = of_functions([replace(good, **wrong)], CODE)
    assert found.status is Status.FAIL
    assert message in found.message


def test_a_person_reads_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Under a fault stands its fix, and at the end how many there are; that ends with one."""
    with pytest.raises(typer.Exit) as end:
        tell(
            [ok("a", "well"), warn("b", "old", "renew it"), fail("c", "gone", "make it")],
            as_json=False,
        )
    said = capsys.readouterr().out
    assert end.value.exit_code == 1
    assert said.index("✗   c") < said.index("gone") < said.index("→ make it")
    assert said.rstrip().endswith("1 ok, 1 warn, 1 fail")


def test_a_warning_ends_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """What works now does not fail a pipeline; a program reads the same as a person."""
    tell([warn("b", "old", "renew it")], as_json=True)
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found == {"check": "b", "status": "warn", "message": "old", "fix": "renew it"}
