"""The rules that the platform's template must keep, read from the template."""

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from infra import template
from infra.local.parts import options
from infra.versions import EMR_RELEASE_LABEL
from tests.deploy.platform import PLATFORM, ROOT, UNTRIED, read

_DATA = {"Database", "DatabaseSecret", "NessieRefsTable", "NessieObjectsTable"}
_KEPT = "RetainExceptOnCreate"


@pytest.mark.deploy
def test_the_linter_finds_nothing() -> None:
    """The template is valid with each property's values and needs no packaging."""
    lint = ROOT / ".venv-deploy" / "bin" / "cfn-lint"
    done = subprocess.run(
        (lint, "--regions", "us-east-1", "--", PLATFORM),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_what_holds_data_is_kept_and_all_that_it_refers_to() -> None:
    """`destroy` keeps the store and its network, which refer to no deleted resource."""
    every = read()["Resources"]
    marked = {name for name, each in every.items() if each.get("DeletionPolicy") == _KEPT}
    assert template.reduced(read())["Resources"].keys() == marked
    assert marked >= _DATA
    assert all(every[name]["UpdateReplacePolicy"] == "Retain" for name in marked)


def test_no_policy_has_a_star() -> None:
    """Each role may do named actions on named resources; only ECR's token has no resource."""
    for statement in _statements():
        actions, on = _listed(statement["Action"]), _listed(statement["Resource"])
        assert not any("*" in action for action in actions), statement["Sid"]
        if "*" in on:
            assert actions == ["ecr:GetAuthorizationToken"], statement["Sid"]


def test_nessie_may_delete_nothing_in_the_lake() -> None:
    """Nessie's tasks read and write the lake's warehouse in S3 and may delete nothing."""
    role = read()["Resources"]["NessieTaskRole"]["Properties"]
    (lake,) = [s for s in _within(role, "Sid") if "s3:" in str(s["Action"])]
    assert lake["Action"] == ["s3:GetObject", "s3:PutObject"]
    assert str(lake["Resource"]).endswith("lakegate-${Stage}-lake-${AWS::AccountId}/warehouse/*'}")


def test_only_functions_and_jobs_reach_nessie() -> None:
    """Only functions and jobs reach the load balancer, and nothing from outside the VPC."""
    resources = read()["Resources"]
    rules = [rule for each in resources.values() for rule in _ingress(each)]
    assert {str(rule.get("CidrIp", "")) for rule in rules} <= {
        "",
        "{'Fn::Sub': '${NetworkPrefix}.0.0/16'}",
    }
    to_nessie = _ingress(resources["LoadBalancerSecurityGroup"])
    assert [rule["SourceSecurityGroupId"]["Ref"] for rule in to_nessie] == [
        "FunctionSecurityGroup",
        "JobSecurityGroup",
    ]
    to_tasks = _ingress(resources["NessieSecurityGroup"])
    assert {rule["SourceSecurityGroupId"]["Ref"] for rule in to_tasks} == {
        "LoadBalancerSecurityGroup"
    }
    assert resources["NessieLoadBalancer"]["Properties"]["Scheme"] == "internal"


def test_there_is_a_way_to_each_service_that_is_called_from_inside() -> None:
    """Every service that is called has an endpoint, because the subnets have no route out."""
    called = {
        service
        for package in ("functions", "spark_jobs")
        for file in (ROOT / package).rglob("*.py")
        for service in re.findall(
            r'boto3\.(?:client|resource)\(\s*"([a-z0-9-]+)"', file.read_text()
        )
    }
    endpoints = [r for r in read()["Resources"].values() if r["Type"] == "AWS::EC2::VPCEndpoint"]
    names = [each["Properties"]["ServiceName"]["Fn::Sub"] for each in endpoints]
    # A user with the clean-up's role needs these, and the functions outside the VPC.
    only_outside = {"sts", "sns", "events", "glue"}
    by_emr_itself = {"logs"}
    reached = {name.rpartition(".")[2] for name in names}
    assert reached == called - only_outside | by_emr_itself


def test_the_database_is_encrypted_backed_up_and_nobody_elses() -> None:
    """The database is encrypted, backed up, not public, and protected against deletion."""
    template = read()
    database = template["Resources"]["Database"]["Properties"]
    assert (database["StorageEncrypted"], database["PubliclyAccessible"]) == (True, False)
    assert template["Parameters"]["DatabaseBackupDays"]["MinValue"] >= 1
    assert template["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert database["DeletionProtection"] == {"Ref": "DeletionProtection"}


def test_the_private_key_is_not_asked_for() -> None:
    """The stack gets only the public key, without which Nessie would not start."""
    template = read()
    assert "Default" not in template["Parameters"]["NessiePublicKey"]
    assert "signing-key" not in PLATFORM.read_text()


def test_the_document_names_what_was_not_tried() -> None:
    """The page names each kind of resource that ministack does not support."""
    page = (ROOT / "docs" / "platform.md").read_text()
    named = {word.strip("`,.") for word in page.split() if word.startswith("`AWS::")}
    assert named == UNTRIED.keys()
    assert {each["Type"] for each in read()["Resources"].values()} >= UNTRIED.keys()


def test_jobs_run_under_the_release_that_the_tests_run_with() -> None:
    """The release label has the Spark and Iceberg versions of the lock files."""
    assert read()["Parameters"]["EmrRelease"]["Default"] == EMR_RELEASE_LABEL


def test_rules_and_options_are_those_of_the_local_stack() -> None:
    """The container has the options of every Nessie and, besides, only those of its store."""
    (container,) = read()["Resources"]["NessieTask"]["Properties"]["ContainerDefinitions"]
    variables = dict(_variables(container["Environment"]))
    common = options("", "", "")
    assert variables.keys() >= common.keys()
    fixed = {name: value for name, value in variables.items() if isinstance(value, str)}
    assert (
        fixed.items()
        <= {**common, "nessie.version.store.persist.jdbc.datasource": "postgresql"}.items()
    )
    own = variables.keys() - common.keys()
    assert all(name.startswith(("nessie.version.store.", "quarkus.d")) for name in own)


def _variables(given: list[Any]) -> Iterator[tuple[str, Any]]:
    for each in given:
        chosen = each.get("Fn::If", [None, each])[1]
        yield chosen["Name"], chosen["Value"]


def _statements() -> list[dict[str, Any]]:
    roles = [r for r in read()["Resources"].values() if r["Type"] == "AWS::IAM::Role"]
    assert len(roles) == 2
    return [found for role in roles for found in _within(role["Properties"]["Policies"], "Sid")]


def _within(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield every mapping within `value` that has the key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _within(each, key)


def _ingress(resource: dict[str, Any]) -> list[dict[str, Any]]:
    assert resource["Type"] != "AWS::EC2::SecurityGroupIngress", "rules are in their groups"
    found: list[dict[str, Any]] = resource.get("Properties", {}).get("SecurityGroupIngress", [])
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
