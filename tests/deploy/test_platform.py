"""The rules that the platform's template must keep, read from the template."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from functions.adapters.spark_submit import SMALL
from infra import template
from infra.aws.site import choices
from infra.stack_spec import platform
from infra.stage import Stage
from lakegate.errors import LakegateError
from tests.compiled import Compiled
from tests.deploy.platform import PLATFORM, ROOT, UNTRIED, read

_DATA = {"Database", "DatabaseSecret", "NessieRefsTable", "NessieObjectsTable"}
_DATA |= {"FlowLogGroup", "NessieLogs"}
_KEPT = "RetainExceptOnCreate"
_SAFE = {"Profile": "production", "AlarmEmail": "a@example.com", "LogRetentionDays": "365"}
_SAFE |= {"EndpointZones": "2", "DatabaseZones": "2"}
_SAFE |= {"NessieDigest": f"sha256:{'0' * 64}"}


def test_what_holds_data_is_kept_and_all_that_it_refers_to() -> None:
    """`destroy` keeps the store and its network, which refer to no deleted resource."""
    every = read()["Resources"]
    marked = {name for name, each in every.items() if each.get("DeletionPolicy") == _KEPT}
    assert template.reduced(read())["Resources"].keys() == marked
    assert marked >= _DATA
    assert all(every[name]["UpdateReplacePolicy"] == "Retain" for name in marked)


def test_nessie_may_delete_nothing_in_the_lake() -> None:
    """Nessie's tasks read and write the lake's warehouse in S3 and may delete nothing."""
    role = read()["Resources"]["TaskRole"]["Properties"]
    (lake,) = [s for s in _within(role, "Sid") if "s3:" in str(s["Action"])]
    assert lake["Action"] == ["s3:GetObject", "s3:PutObject"]
    text, parts = lake["Resource"]["Fn::Sub"]
    assert text == "arn:${AWS::Partition}:s3:::${Lake}/warehouse/*"
    assert "lakegate-${Stage}-lake-${AWS::AccountId}-${AWS::Region}" in str(parts)


def test_only_functions_jobs_and_chosen_readers_reach_nessie() -> None:
    """Functions, jobs and the readers that a parameter names reach the load balancer, no others."""
    resources = read()["Resources"]
    by_default = [rule for each in resources.values() for rule in _ingress(each)]
    assert {str(rule.get("CidrIp", "")) for rule in by_default} <= {
        "",
        "{'Fn::Sub': '${NetworkPrefix}.0.0/16'}",
    }
    to_nessie = _ingress(resources["LoadBalancerSecurityGroup"])
    assert [rule["SourceSecurityGroupId"]["Ref"] for rule in to_nessie] == [
        "FunctionSecurityGroup",
        "JobSecurityGroup",
    ]
    readers = _ingress(
        resources["LoadBalancerSecurityGroup"], "HasReaderCidr", "HasReaderSecurityGroup"
    )[2:]
    port = {"IpProtocol": "tcp", "FromPort": 19120, "ToPort": 19120, "Description": "readers"}
    assert readers == [
        {**port, "CidrIp": {"Ref": "ReaderCidr"}},
        {**port, "SourceSecurityGroupId": {"Ref": "ReaderSecurityGroup"}},
    ]
    for name in ("ReaderCidr", "ReaderSecurityGroup"):
        assert read()["Parameters"][name]["Default"] == ""
        condition = {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]}
        assert read()["Conditions"][f"Has{name}"] == condition
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


def test_nessies_address_is_https() -> None:
    """The listener speaks TLS alone, and the fact and the output say https.

    Only an application load balancer says so to Nessie, and Nessie believes it alone.
    """
    found = read()
    resources = found["Resources"]
    listener = resources["NessieListener"]["Properties"]
    assert listener["Protocol"] == "HTTPS"
    assert listener["Certificates"] == [{"CertificateArn": {"Ref": "CertificateArn"}}]
    assert "TLS13" in listener["SslPolicy"]
    assert resources["NessieLoadBalancer"]["Properties"]["Type"] == "application"
    address = {"Fn::Sub": "https://${NessieName}:19120"}
    assert resources["NessieUriParameter"]["Properties"]["Value"] == address
    assert found["Outputs"]["NessieUri"]["Value"] == {"Fn::GetAtt": ["NessieUriParameter", "Value"]}
    assert resources["NessieAddress"]["Properties"]["Name"] == {"Ref": "NessieName"}
    for name in ("CertificateArn", "NessieName"):
        assert "Default" not in found["Parameters"][name]


@pytest.mark.parametrize(
    ("given", "broken"),
    [
        ({}, ()),
        (_SAFE, ("needs DatabaseCa",)),
        ({**_SAFE, "NessieStore": "DYNAMODB2"}, ()),
        ({**_SAFE, "DatabaseCa": "x"}, ()),
        (
            {"Profile": "production", "DatabaseCa": "x"},
            (
                *("needs AlarmEmail", "needs EndpointZones and DatabaseZones 2"),
                *("logs for a year", "docker buildx imagetools inspect"),
            ),
        ),
    ],
)
def test_a_production_stage_is_safe(given: dict[str, str], broken: tuple[str, ...]) -> None:
    """It needs TLS to Nessie's database, alarms, zones, logs and an image that stays."""
    known = Stage("dev", "000000000000", "eu-central-1")
    if not broken:
        assert platform(PLATFORM, known, "key", given).parameters.items() >= given.items()
        return
    with pytest.raises(LakegateError, match="BAD_SETTING") as refusal:
        platform(PLATFORM, known, "key", given)
    assert all(words in refusal.value.message for words in broken)
    assert len(refusal.value.message.splitlines()) == len(broken)


def test_a_production_stage_has_two_zones_alarms_and_a_year_of_logs() -> None:
    """CloudFormation refuses a production stage without them, and stages/prod.yml has the rest."""
    described = read()
    rules = described["Rules"]["Production"]
    assert rules["RuleCondition"] == {"Fn::Equals": [{"Ref": "Profile"}, "production"]}
    asked = {name for each in rules["Assertions"] for name in template.references(each["Assert"])}
    assert asked >= {"AlarmEmail", "EndpointZones", "DatabaseZones", "LogRetentionDays"}
    prod = choices(ROOT / "stages" / "prod.yml")
    assert (prod["EndpointZones"], prod["DatabaseZones"], prod["LogRetentionDays"]) == (
        "2",
        "2",
        "365",
    )
    allowed = described["Parameters"]["NessieCpu"]["AllowedValues"]
    assert prod["NessieCpu"] in allowed
    assert int(prod["NessieCpu"]) >= 4096  # as Nessie's documentation asks
    assert int(prod["NessieMemory"]) >= 4096
    assert not prod["DatabaseClass"].startswith(
        "db.t"
    )  # whose CPU is short once credits are used up


def test_a_warm_driver_has_the_size_of_a_small_runs() -> None:
    """EMR takes a warm worker only for a run that asks for its size."""
    shared = read()["Resources"]["EmrSharedApplication"]["Properties"]
    _, warm, _ = shared["InitialCapacity"]["Fn::If"]
    ((kind, size),) = [(each["Key"], each["Value"]["WorkerConfiguration"]) for each in warm]
    hour = SMALL.use(hours=1)
    assert kind == "Driver"
    assert size["Cpu"] == f"{SMALL.cores}vCPU"
    assert size["Memory"] == f"{hour.memory_gb_hours / (1 + SMALL.executors):.0f}GB"


def test_the_image_can_be_pinned() -> None:
    """With a digest Nessie's tasks run this image and no other, wherever it comes from."""
    (container,) = read()["Resources"]["NessieTask"]["Properties"]["ContainerDefinitions"]
    _, *ways = container["Image"]["Fn::If"]
    assert [way["Fn::If"][:2] for way in ways] == [
        ["PinsImage", {"Fn::Sub": f"${{{source}}}@${{NessieDigest}}"}]
        for source in ("ImageCache.RepositoryUri", "NessieImage")
    ]


def test_a_production_stage_logs_its_connections() -> None:
    """stages/prod.yml keeps flow logs; without the parameter there is none."""
    assert choices(ROOT / "stages" / "prod.yml")["FlowLogs"] == "true"
    assert read()["Resources"]["FlowLog"]["Condition"] == "KeepsFlowLogs"
    assert read()["Parameters"]["FlowLogs"]["Default"] == "false"


def test_a_budget_can_get_another_address() -> None:
    """CloudFormation then makes a second one before it deletes the first: its name must be new."""
    named = {
        Compiled.of(ROOT / "infra/platform.yml", BudgetEmail=f"{who}@example.com").resolve(
            read()["Resources"]["Budget"]["Properties"]["Budget"]["BudgetName"]
        )
        for who in ("ann", "bob")
    }
    assert len(named) == 2


def test_the_private_key_is_not_asked_for() -> None:
    """The stack gets only the public key, without which Nessie would not start."""
    template = read()
    assert "Default" not in template["Parameters"]["NessiePublicKey"]
    assert "signing-key" not in PLATFORM.read_text()


def test_the_document_names_what_was_not_tried() -> None:
    """The page names each kind of resource that ministack does not support."""
    page = (ROOT / "docs" / "aws.md").read_text()
    named = {word.strip("`,.") for word in page.split() if word.startswith("`AWS::")}
    assert named == UNTRIED.keys()
    assert {each["Type"] for each in read()["Resources"].values()} >= UNTRIED.keys()


def _within(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield every mapping within `value` that has the key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _within(each, key)


def _ingress(resource: dict[str, Any], *conditions: str) -> list[dict[str, Any]]:
    """Return a security group's rules where these conditions hold, and no other one."""
    assert resource["Type"] != "AWS::EC2::SecurityGroupIngress", "rules are in their groups"
    found: list[dict[str, Any]] = resource.get("Properties", {}).get("SecurityGroupIngress", [])
    chosen = [
        rule["Fn::If"][1 if rule["Fn::If"][0] in conditions else 2] if "Fn::If" in rule else rule
        for rule in found
    ]
    return [rule for rule in chosen if rule != {"Ref": "AWS::NoValue"}]
