"""`lakegate doctor` names each problem with its fix, and no problem hides another."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import typer

from access.ingestions.shared_runs import SharedRuns
from cli.doctor.aws_view import QUEUE, Deviation, StackView
from cli.doctor.checks import DoctorInputs, checks
from cli.doctor.doctor import report
from cli.doctor.rights import rights
from cli.doctor.rules import check_budget, check_shared_runs, check_stack
from functions.adapters.emr import JobRun, RunState
from functions.health.model import Finding, Status, carry_out, fail, ok, warn
from functions.model.budget import Spending
from infra.package import Package
from infra.stage import Stage
from lakegate.errors import LakegateError
from tests.fakes.deployment import SETTINGS
from tests.fakes.outside import FakeOutside

CODE = b"a zip"
DIGEST = base64.b64encode(hashlib.sha256(CODE).digest()).decode()
STAGE = Stage("dev", "000000000000", "eu-west-1")
FACTS = {
    "nessie-uri": SETTINGS.nessie_uri,
    "nessie-ca": SETTINGS.nessie_ca,
    "emr-application-id": SETTINGS.emr_application_id,
    "emr-shared-application-id": SETTINGS.emr_shared_application_id,
}
FAIL, WARN = Status.FAIL, Status.WARN
MADE = "resources' settings"
NAMES = (
    *("stack", "platform", "platform's facts", "parameters", "functions", "queues' functions"),
    *("rules", "job's release", "contracts", "Slack", "buttons"),
    *(MADE, "alarms", "function errors", "waiting messages", "shared runs", "budget"),
    "permissions",
)


def deviating(status: str, **more: Any) -> dict[str, Any]:
    """Return a resource that differs from the template."""
    found = Deviation("Changed", more.pop("type", QUEUE), status, "denied", **more)
    return {"deviating": [found]}


def changed(type_: str, path: str, actual: str = "Suspended") -> dict[str, Any]:
    """Return a resource of a type whose property was changed by hand."""
    return deviating("MODIFIED", type=type_, differences=((path, "Enabled", actual),))


OTHER = {"Stage": "prod", "Newer": "x"}
OFF = {"states": {"mapping-1": "Disabled"}}
STOPPED = {"states": {"sweep-rule": "DISABLED"}}
UNSIGNED = {"answered": "NO_SIGNING_SECRET"}
NESSIE = "lakegate-dev-nessie-down"
DEADLINE = {"uploads": "lakegate-deadline-uploads", "ages": {"lakegate-deadline-uploads": 1860}}
LATE = {"ages": {"uploads": 1860, "uploads-dead": 99999}}
UP = JobRun("00up", "shared-0-1", RunState.RUNNING)
FAILED = JobRun("00failed", "shared-0-0", RunState.FAILED, "no room")
SHARED_RUNS = SharedRuns(most=2, files=30, up=(UP,), failed=())
NONE_UP = {"shared_runs": lambda: replace(SHARED_RUNS, up=())}
OFF_NOW = {"shared_runs": lambda: replace(SHARED_RUNS, most=0, up=())}
FAILING = {"shared_runs": lambda: replace(SHARED_RUNS, failed=(FAILED,))}
BUCKET = "AWS::S3::Bucket"
VERSIONING = "Changed/VersioningConfiguration/Status is Suspended, but Enabled in the template"


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
    """Return a deployment of the package, with differences in the inputs or in what AWS shows."""
    ours = {each.name for each in fields(DoctorInputs)}
    given = {name: value for name, value in seen.items() if name in ours}
    shown: dict[str, Any] = {"sha256": DIGEST, "allows": wanted}
    shown |= {name: value for name, value in seen.items() if name not in ours}
    aws: Any = FakeOutside(**shown)
    release = package.job_release
    deployment = DoctorInputs(
        stage=STAGE,
        settings=replace(SETTINGS, job_code=f"s3://lake/jobs/{release}"),
        aws=aws,
        facts=lambda: FACTS | {"job-release": release},
        parameters=lambda: {"Stage": "dev", "Newer": "x"},
        package=lambda: package,
        contracts=lambda: {"shop.orders": "1"},
        in_force=lambda: {"shop.orders": "1"},
        shared_runs=lambda: SHARED_RUNS,
        spending=lambda: Spending("2026-11-27", 3_200_000, 500_000),
    )
    return replace(deployment, **given)


def faults(deployment: DoctorInputs) -> list[Finding]:
    """Return all findings that are not ok."""
    found = carry_out(list(checks(deployment)))
    assert {each.check.partition("' code")[0] for each in found} == set(NAMES)
    wrong = [each for each in found if each.status is not Status.OK]
    assert all(each.fix for each in wrong)
    return wrong


def refuse() -> Package:
    raise LakegateError("PACKAGING_FAILED", "the libraries cannot be installed")


@pytest.mark.parametrize("platform", ["UPDATE_COMPLETE", ""])
def test_a_deployment_of_this_checkout_is_well(package: Package, platform: str) -> None:
    """An unchanged deployment has no problem, with the platform's stack or its owner's."""
    assert faults(inputs(package, platform=platform)) == []


def test_an_installed_package_compares_with_no_checkout(package: Package) -> None:
    """Where there is no checkout, what needs one is left out, and all else is checked."""
    none: dict[str, Any] = {"package": refuse, "parameters": refuse, "contracts": refuse}
    alone = replace(inputs(package), has_checkout=False, **none)
    well = carry_out(checks(alone))
    assert [each for each in well if each.status is not Status.OK] == []
    assert {each.check for each in well} == {*NAMES} - {"parameters", "job's release", "contracts"}
    failed = replace(alone, aws=inputs(package, states={"on-alert": "Failed"}).aws)
    assert "on-alert is Failed" in str(carry_out(checks(failed)))


@pytest.mark.parametrize(
    ("seen", "check", "status", "message", "fix"),
    [
        ({"status": "ROLLBACK_COMPLETE"}, "stack", FAIL, "ROLLBACK", "events"),
        ({"status": ""}, "stack", FAIL, "there is no lakegate-dev", "lakegate deploy"),
        ({"platform": "UPDATE_FAILED"}, "platform", FAIL, "UPDATE_FAILED", "events"),
        ({"parameters": lambda: OTHER}, "parameters", WARN, "dev, but prod in", "lakegate deploy"),
        ({"sha256": "x"}, "functions' code", WARN, "on-upload, on-alert", "deploy"),
        ({"states": {"on-alert": "Failed"}}, "functions", FAIL, "on-alert is Failed", "deploy"),
        (OFF, "queues' functions", FAIL, "UploadMapping is Disabled", "--enabled --uuid mapping-1"),
        (STOPPED, "rules", FAIL, "SweepRule is DISABLED", "enable-rule --name sweep-rule"),
        ({"secrets": set()}, "Slack", FAIL, "the secret slack does not exist", "bot token"),
        (UNSIGNED, "buttons", FAIL, "2 users may press them, but no press", "secret slack"),
        ({"users": ""}, "buttons", WARN, "no user may press", "`SlackUsers`"),
        ({"answered": "QUEUE_AWAY"}, "buttons", FAIL, "answered QUEUE_AWAY", "on-action"),
        (changed(BUCKET, "/VersioningConfiguration/Status"), MADE, FAIL, VERSIONING, "set it back"),
        (changed(f"{BUCKET}Policy", "/PolicyDocument", ""), MADE, FAIL, "is empty", "set it back"),
        (changed(QUEUE, "/RedrivePolicy/maxReceiveCount"), MADE, FAIL, "Changed", "set it back"),
        (changed(QUEUE, "/Tags/0", f"a{' b' * 60}"), MADE, WARN, " b b…, but", "set it back"),
        (deviating("DELETED"), MADE, FAIL, "Changed does not exist", "create it again"),
        (deviating("UNKNOWN"), MADE, WARN, "cannot be compared: denied", "permission"),
        ({"ringing": {"lakegate-dev-x": "Look."}}, "alarms", FAIL, "-x is in alarm. Look.", "docs"),
        ({"ringing": {NESSIE: "See."}}, "alarms", FAIL, f"{NESSIE} is in alarm. See.", "docs"),
        ({"failed": {"on-alert": 2}}, "function errors", WARN, "2 times", "on-alert --since 1h"),
        (LATE, "waiting messages", WARN, "uploads: a message waited 31 minutes", "enabled"),
        (DEADLINE, "waiting messages", WARN, "deadline-uploads: a message waited", "enabled"),
        (NONE_UP, "shared runs", WARN, "none is up, but about 30 files wait", "on-upload"),
        (OFF_NOW, "shared runs", WARN, "none is up, but about 30 files wait", "SharedRuns"),
        (FAILING, "shared runs", WARN, "1 failed in the last hour, such as shared-0-0", "00failed"),
        ({"hidden": {"alarms"}}, "alarms", WARN, "skipped", "permission to read"),
        ({"hidden": {"may"}}, "permissions", WARN, "skipped", "permission to read"),
        ({"hidden": {"deviations"}}, MADE, WARN, "skipped", "permission to read"),
        ({"hidden": {"mapping"}}, "queues' functions", FAIL, "cannot be", "permission to read"),
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


def test_a_digest_that_nobody_wants_is_no_fault(package: Package) -> None:
    """With DigestState DISABLED its rule must be off; otherwise it must be on, as all are."""
    off = {"states": {"digest-rule": "DISABLED"}}
    assert faults(inputs(package, digest="DISABLED", **off)) == []
    (found,) = faults(inputs(package, **off))
    assert "DigestRule is DISABLED" in found.message


def test_another_stages_alarm_is_not_this_ones(package: Package) -> None:
    """The alarms of the stage `dev-2` begin with the name of the stage `dev`."""
    assert faults(inputs(package, ringing={"lakegate-dev-2-x": "Look."})) == []


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
    old = replace(SETTINGS, job_code="s3://lake/jobs/old")
    told = {**FACTS, "job-release": "old"}
    (found,) = faults(inputs(package, settings=old, facts=lambda: told))
    assert found.message == f"is old, but {package.job_release} in this checkout"


def test_contracts_that_differ_are_reported(package: Package) -> None:
    """Contracts are reported that differ, are not in force, or are missing here."""
    here, there = {"a.a": "1", "b.b": "1"}, {"a.a": "2", "c.c": "1"}
    found = faults(inputs(package, contracts=lambda: here, in_force=lambda: there))
    assert [each.message for each in found] == [
        "a.a: in force in another version",
        "b.b: not in force",
        "c.c: in force, but not in this checkout",
    ]
    remedies = ("contract push", "contract push", "contract withdraw")
    assert all(each in one.fix for each, one in zip(remedies, found, strict=True))


def test_a_platform_fact_that_is_not_in_use_is_reported(package: Package) -> None:
    """Missing and changed SSM parameters are reported."""
    told = {"nessie-uri": "http://moved", "job-release": package.job_release}
    found = faults(inputs(package, facts=lambda: told))
    assert [(each.status, each.message) for each in found] == [
        (
            Status.WARN,
            "nessie-uri is http://moved in SSM, but the functions use http://nessie:19120",
        ),
        (Status.FAIL, "SSM has no nessie-ca"),
        (Status.FAIL, "SSM has no emr-application-id"),
        (Status.FAIL, "SSM has no emr-shared-application-id"),
    ]


def test_a_package_that_cannot_be_built_hides_nothing(package: Package) -> None:
    """Only the checks that need the package fail if it cannot be built."""
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
    assert check_stack(StackView("lakegate-dev", stack)).status is status


def test_the_output_shows_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    """The text output shows a fix below each problem and the totals; the exit code is 1."""
    with pytest.raises(typer.Exit) as end:
        report(
            [ok("well", "a"), warn("old", "renew it", "b"), fail("gone", "make it", "c")],
            as_json=False,
        )
    said = capsys.readouterr().out
    assert end.value.exit_code == 1
    assert said.index("✗   c") < said.index("gone") < said.index("→ make it")
    assert said.rstrip().endswith("1 ok, 1 warn, 1 fail")


def test_a_warning_ends_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning alone exits with 0, and JSON has the same fields."""
    report([warn("old", "renew it", "b")], as_json=True)
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found == {"check": "b", "status": "warn", "message": "old", "fix": "renew it"}


def test_no_run_is_needed_while_no_file_waits() -> None:
    """Without waiting files it is well that no shared run is up."""
    (found,) = check_shared_runs(replace(SHARED_RUNS, files=0, up=()))
    assert (found.status, found.message) == (Status.OK, "0 of at most 2 up, no file waits")


def test_a_budget_is_told_with_what_is_used_of_it() -> None:
    """Without room it is a warning that says what to do; without a budget all is well."""
    spent = Spending("2026-11-27", 3_200_000, 500_000)
    found = check_budget(spent, 10)
    assert (found.status, found.message) == (
        Status.OK,
        "$3.20 of $10.00 are used, and runs under way may use $0.50",
    )
    assert check_budget(spent, 0).status is Status.OK
    reasons = {3_200_000: "no room until a run ends", 4_000_000: "used up until 00:00"}
    for used, words in reasons.items():
        full = check_budget(Spending("2026-11-27", used, 800_000), 4)
        assert full.status is Status.WARN
        assert words in full.message
        assert "raise DailyBudgetUsd" in full.fix
