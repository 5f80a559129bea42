"""The policies that are shipped for uploaders, readers and deployers, and roles' boundaries."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from infra import template
from tests.compiled import ACCOUNT, EMR, Compiled
from tests.deploy.calls import Call, recorded
from tests.policies import Identity, listed, statements

ROOT = Path(__file__).parents[3]
TEMPLATES = [ROOT / "template.yaml", ROOT / "infra" / "platform.yml"]
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/team"
LANDING, LAKE = (
    f"arn:aws:s3:::lakegate-dev-{kind}-{ACCOUNT}-us-east-1" for kind in ("landing", "lake")
)
MOST = 6_144  # characters of a managed policy without white space (IAM quotas)
REGION = {"aws__RequestedRegion": "us-east-1"}


def compiled(name: str, **parameters: str) -> Compiled:
    return Compiled.of(ROOT / "infra" / "policies" / f"{name}.yml", **parameters)


def person(name: str, *policies: str, **parameters: str) -> Identity:
    """Return a person or a program with the policies of a file, or with some of them."""
    found = compiled(name, **parameters)
    documents = [
        found.resolve(each["Properties"]["PolicyDocument"])
        for policy, each in found.resources.items()
        if policy in (policies or found.resources)
    ]
    return Identity(f"arn:aws:iam::{ACCOUNT}:role/{name}", documents)


def arn(service: str, resource: str, region: str = "us-east-1") -> str:
    return f"arn:aws:{service}:{region}:{ACCOUNT}:{resource}"


def token(role: str) -> str:
    return arn("secretsmanager", f"secret:lakegate/dev/nessie/{role}-Ab12Cd")


def test_an_uploader_drops_files_of_its_table_alone() -> None:
    """Without a batch prefix it puts objects below the landing prefix, and does nothing else."""
    uploader = person("uploader", LandingPrefix="shop/orders/")
    assert uploader.may("s3:PutObject", f"{LANDING}/shop/orders/a.csv")
    for key in ("shop/returns/a.csv", "shop/orders", "batches/shop-1/_manifest.json"):
        assert not uploader.may("s3:PutObject", f"{LANDING}/{key}"), key
    assert not uploader.may("s3:PutObject", f"{LAKE}/shop/orders/a.csv")
    for action in ("GetObject", "DeleteObject", "PutObjectAcl", "DeleteObjectVersion"):
        assert not uploader.may(f"s3:{action}", f"{LANDING}/shop/orders/a.csv"), action
    assert not uploader.may("s3:ListBucket", LANDING)


def test_an_uploader_of_batches_has_a_prefix_of_its_own() -> None:
    """It can write the manifests that a contract allows by this prefix, and no others."""
    uploader = person("uploader", LandingPrefix="shop/orders/", BatchPrefix="batches/shop-")
    assert uploader.may("s3:PutObject", f"{LANDING}/batches/shop-1/_manifest.json")
    assert not uploader.may("s3:PutObject", f"{LANDING}/batches/till-1/_manifest.json")


def test_a_reader_reads_tables_and_its_token() -> None:
    """It reads the warehouse with the reader's token; everything else is denied."""
    reader = person("reader")
    data = f"{LAKE}/warehouse/shop/orders/data/a.parquet"
    assert reader.may("s3:GetObject", data)
    assert reader.may("s3:ListBucket", LAKE, s3__prefix="warehouse/shop/")
    assert not reader.may("s3:ListBucket", LAKE, s3__prefix="reports/")
    for action in ("PutObject", "DeleteObject"):
        assert not reader.may(f"s3:{action}", data)
    for key in ("reports/shop.orders/a/1.json", "contracts/shop.orders.yaml", "staging/a"):
        assert not reader.may("s3:GetObject", f"{LAKE}/{key}"), key
    assert not reader.may("s3:GetObject", f"{LANDING}/shop/orders/a.csv")
    assert reader.may("secretsmanager:GetSecretValue", token("reader"))
    for role in ("uploader", "job", "publisher", "signing-key"):
        assert not reader.may("secretsmanager:GetSecretValue", token(role)), role


KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/ours"


# Of who chooses a table's key (DynamoDB, "DynamoDB encryption at rest": key policy for a customer
# managed key), besides CreateGrant.
DYNAMODB_NEEDS = (
    *("DescribeKey", "Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo"),
    *("GenerateDataKey", "GenerateDataKeyWithoutPlaintext"),
)


def via(service: str) -> dict[str, str]:
    return {"kms__ViaService": f"{service}.us-east-1.amazonaws.com"}


def test_people_use_the_stages_key_for_what_they_do() -> None:
    """An uploader encrypts, a reader only decrypts, a deployer lets DynamoDB use the key.

    The page does as the functions do that decide.

    Without the parameter nobody has a right on any key.
    """
    uploader = person("uploader", LandingPrefix="shop/", KmsKeyArn=KEY)
    reader, deployer = person("reader", KmsKeyArn=KEY), person("deployer", KmsKeyArn=KEY)
    page = person("page", **EMR, KmsKeyArn=KEY)
    for who, service, may in (
        (page, "s3", ("Decrypt", "GenerateDataKey")),
        (page, "sqs", ("Decrypt", "GenerateDataKey")),
        (page, "dynamodb", ("Decrypt",)),
        (page, "secretsmanager", ("Decrypt",)),
        (uploader, "s3", ("Decrypt", "GenerateDataKey")),
        (reader, "s3", ("Decrypt",)),
        (reader, "secretsmanager", ("Decrypt",)),
        (deployer, "s3", ("Decrypt", "GenerateDataKey")),
        (deployer, "dynamodb", ("Decrypt", "GenerateDataKey")),
        (deployer, "sqs", ()),
    ):
        for action in ("Decrypt", "GenerateDataKey"):
            assert who.may(f"kms:{action}", KEY, **via(service)) is (action in may)
            assert not who.may(f"kms:{action}", KEY)
    for action in DYNAMODB_NEEDS:
        assert deployer.may(f"kms:{action}", KEY, **via("dynamodb")), action
    for store in ("dynamodb", "rds"):  # of a database RDS needs no other right but DescribeKey
        grant = {"kms__GrantIsForAWSResource": "true", **via(store)}
        assert deployer.may("kms:CreateGrant", KEY, **grant)
        assert not deployer.may("kms:CreateGrant", KEY, **via(store))
    for name in ("uploader", "reader", "deployer"):
        assert "kms:" not in str(person(name, "App", "Uploader", "Reader").policies)


def test_people_reach_an_existing_lake() -> None:
    """With the lake's name reader, deployer and page reach that bucket, and no longer ours."""
    reader, deployer = (
        person(name, LakeBucketName="their-lake") for name in ("reader", "deployer")
    )
    page = person(
        "page",
        **EMR,
        LakeBucketName="their-lake",
    )
    theirs = "arn:aws:s3:::their-lake"
    assert page.may("s3:GetObject", f"{theirs}/reports/a")
    assert not page.may("s3:GetObject", f"{LAKE}/reports/a")
    assert reader.may("s3:GetObject", f"{theirs}/warehouse/a")
    assert deployer.may("s3:PutObject", f"{theirs}/contracts/a")
    assert deployer.may("s3:ListBucket", theirs)  # also to learn whether it is there
    assert not deployer.may("s3:PutBucketPolicy", theirs)
    assert not reader.may("s3:GetObject", f"{LAKE}/warehouse/a")
    for key in ("warehouse/a", "reports/a"):
        assert not deployer.may("s3:PutObject", f"{theirs}/{key}")


def test_a_key_lets_the_services_use_it_that_act_for_nobody() -> None:
    """Logs, S3, EventBridge and CloudWatch use the key; EventBridge tells KMS no account."""
    key = compiled("key")
    policy = key.resolve(key.resources["Key"]["Properties"]["KeyPolicy"])
    services: dict[str, Any] = {
        principal: statement.get("Condition")
        for statement in statements(policy)
        for principal in listed(statement["Principal"].get("Service", []))
    }
    own = {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    (groups,) = services.pop("logs.us-east-1.amazonaws.com")["ArnLike"].values()
    assert all(each.startswith(f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/") for each in groups)
    assert services == {
        "s3.amazonaws.com": own,
        "events.amazonaws.com": None,
        "cloudwatch.amazonaws.com": own,
    }


# What the function that publishes may, but the page needs not: a network, logs, its own queue.
_OF_THE_FUNCTION = ("ec2:", "logs:", "sqs:ReceiveMessage", "sqs:DeleteMessage")


@pytest.mark.parametrize("more", [{}, {"LandingBucketArns": "arn:aws:s3:::a-b,arn:aws:s3:::c-d"}])
def test_the_page_may_decide_and_no_more(more: dict[str, str]) -> None:
    """It may what the function may that publishes and replays, reads rows, and deletes nothing."""
    page = person("page", **EMR, **more)
    app = Compiled.of(TEMPLATES[0], Stage="dev", **EMR, **more)
    publisher = app.roles()["OnJobRunRole"]
    for each in statements(*publisher.policies):
        for action, resource in product(listed(each["Action"]), listed(each["Resource"])):
            if each["Effect"] == "Deny" or action.startswith(_OF_THE_FUNCTION):
                continue
            if resource == arn("sqs", "lakegate-dev-job-runs"):
                continue
            on = resource.replace("role/JobRole", "role/lakegate-dev-JobRole-1a2b")
            assert page.may(action, on, iam__PassedToService="emr-serverless.amazonaws.com"), each
    assert page.may("s3:GetObject", f"{LAKE}/warehouse/shop/orders/data/a.parquet")
    assert page.may("sts:AssumeRole", arn("iam", "role/lakegate-dev-CleanUpRole-1a", region=""))
    assert page.may("dynamodb:Scan", arn("dynamodb", "table/lakegate-dev-ledger"))
    for action in ("PutObject", "DeleteObject"):
        assert not page.may(f"s3:{action}", f"{LAKE}/warehouse/shop/orders/data/a.parquet")
        assert not page.may(f"s3:{action}", f"{LAKE}/contracts/shop.orders.yaml")
    assert not page.may("s3:GetObject", f"{LANDING}/shop/orders/a.csv")
    assert not page.may("dynamodb:DeleteItem", arn("dynamodb", "table/lakegate-dev-ledger"))
    for role in ("uploader", "job", "reader", "signing-key"):
        assert not page.may("secretsmanager:GetSecretValue", token(role)), role


def _anywhere(action: str, service: str, kind: str) -> Callable[[str], tuple[str, str]]:
    return lambda name: (action, arn(service, f"{kind}/{name}-1a2b"))


def _named(action: str, service: str, resource: str) -> Callable[[str], tuple[str, str]]:
    return lambda name: (action, arn(service, resource.format(name=name)))


# The action that creates a resource of each type, and the resource that it is asked for.
CREATES: Mapping[str, Callable[[str], tuple[str, str]]] = {
    "AWS::Budgets::Budget": lambda _: (
        "budgets:ModifyBudget",
        arn("budgets", "budget/lakegate-dev-us-east-1-ann@example.com", region=""),
    ),
    "AWS::CloudWatch::Alarm": _named("cloudwatch:PutMetricAlarm", "cloudwatch", "alarm:{name}"),
    "AWS::CloudWatch::Dashboard": lambda name: (
        "cloudwatch:PutDashboard",
        arn("cloudwatch", f"dashboard/{name}", region=""),
    ),
    "AWS::DynamoDB::Table": _named("dynamodb:CreateTable", "dynamodb", "table/{name}"),
    "AWS::EC2::FlowLog": _anywhere("ec2:CreateFlowLogs", "ec2", "vpc-flow-log"),
    "AWS::EC2::InternetGateway": _anywhere("ec2:CreateInternetGateway", "ec2", "internet-gateway"),
    "AWS::EC2::Route": _anywhere("ec2:CreateRoute", "ec2", "route-table"),
    "AWS::EC2::RouteTable": _anywhere("ec2:CreateRouteTable", "ec2", "route-table"),
    "AWS::EC2::SecurityGroup": _anywhere("ec2:CreateSecurityGroup", "ec2", "security-group"),
    "AWS::EC2::Subnet": _anywhere("ec2:CreateSubnet", "ec2", "subnet"),
    "AWS::EC2::SubnetRouteTableAssociation": _anywhere("ec2:AssociateRouteTable", "ec2", "subnet"),
    "AWS::EC2::VPC": _anywhere("ec2:CreateVpc", "ec2", "vpc"),
    "AWS::EC2::VPCEndpoint": _anywhere("ec2:CreateVpcEndpoint", "ec2", "vpc-endpoint"),
    "AWS::EC2::VPCGatewayAttachment": _anywhere("ec2:AttachInternetGateway", "ec2", "vpc"),
    "AWS::ECR::PullThroughCacheRule": lambda _: ("ecr:CreatePullThroughCacheRule", "*"),
    "AWS::ECR::Repository": _named("ecr:CreateRepository", "ecr", "repository/{name}"),
    "AWS::ECS::Cluster": _named("ecs:CreateCluster", "ecs", "cluster/{name}"),
    "AWS::ECS::Service": _named("ecs:CreateService", "ecs", "service/lakegate-dev/{name}-1a2b"),
    "AWS::ECS::TaskDefinition": lambda _: ("ecs:RegisterTaskDefinition", "*"),
    "AWS::EMRServerless::Application": lambda _: (
        "emr-serverless:CreateApplication",
        arn("emr-serverless", "/"),
    ),
    "AWS::ElasticLoadBalancingV2::Listener": _anywhere(
        "elasticloadbalancing:CreateListener", "elasticloadbalancing", "loadbalancer/app"
    ),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": _anywhere(
        "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing", "loadbalancer/app"
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": _anywhere(
        "elasticloadbalancing:CreateTargetGroup", "elasticloadbalancing", "targetgroup"
    ),
    "AWS::Events::Rule": _anywhere("events:PutRule", "events", "rule"),
    "AWS::IAM::Role": lambda name: ("iam:CreateRole", arn("iam", f"role/{name}-1a2b", region="")),
    "AWS::Lambda::EventSourceMapping": lambda _: ("lambda:CreateEventSourceMapping", "*"),
    "AWS::Lambda::Permission": _named("lambda:AddPermission", "lambda", "function:{name}"),
    "AWS::Lambda::Url": _named("lambda:CreateFunctionUrlConfig", "lambda", "function:{name}"),
    "AWS::Logs::LogGroup": _named("logs:CreateLogGroup", "logs", "log-group:{name}"),
    "AWS::RDS::DBInstance": _named("rds:CreateDBInstance", "rds", "db:{name}"),
    "AWS::RDS::DBSubnetGroup": _named("rds:CreateDBSubnetGroup", "rds", "subgrp:{name}"),
    "AWS::Route53::HostedZone": lambda _: ("route53:CreateHostedZone", "*"),
    "AWS::Route53::RecordSet": lambda _: ("route53:ChangeResourceRecordSets", "*"),
    "AWS::S3::Bucket": lambda name: ("s3:CreateBucket", f"arn:aws:s3:::{name}"),
    "AWS::S3::BucketPolicy": lambda _: ("s3:PutBucketPolicy", LAKE),
    "AWS::SNS::Subscription": _named("sns:Subscribe", "sns", "lakegate-dev-alarms"),
    "AWS::SNS::Topic": _named("sns:CreateTopic", "sns", "{name}"),
    "AWS::SNS::TopicPolicy": _named("sns:SetTopicAttributes", "sns", "lakegate-dev-alarms"),
    "AWS::SQS::Queue": _named("sqs:CreateQueue", "sqs", "{name}"),
    "AWS::SQS::QueuePolicy": _named("sqs:SetQueueAttributes", "sqs", "lakegate-dev-uploads"),
    "AWS::SSM::Parameter": _named("ssm:PutParameter", "ssm", "parameter{name}"),
    "AWS::SecretsManager::Secret": lambda _: (
        "secretsmanager:CreateSecret",
        arn("secretsmanager", "secret:DatabaseSecret-1a2b"),
    ),
    "AWS::Serverless::Function": _named("lambda:CreateFunction", "lambda", "function:{name}"),
}
_NAMES = (
    *("Name", "BucketName", "TableName", "QueueName", "FunctionName", "LogGroupName"),
    *("AlarmName", "TopicName", "ClusterName", "RepositoryName", "DashboardName"),
)


def deployed() -> Iterator[tuple[str, str, str]]:
    """Yield each resource of both stacks: its logical id, type, and its name on AWS."""
    for file in TEMPLATES:
        found = Compiled.of(file, Stage="dev", **EMR)
        stack = "lakegate-dev" if file.name == "template.yaml" else "lakegate-dev-platform"
        for name, resource in found.resources.items():
            properties = resource.get("Properties", {})
            if "Permission" in resource["Type"] or resource["Type"].endswith("Url"):
                named = "lakegate-dev-on-upload"
            else:
                given = (found.resolve(properties[each]) for each in _NAMES if each in properties)
                named = str(next(given, f"{stack}-{name}"))
            yield name, resource["Type"], named


@pytest.mark.parametrize(("name", "kind", "physical"), list(deployed()))
def test_a_deployer_may_create_every_resource(name: str, kind: str, physical: str) -> None:
    """The policies allow what creates each resource of both stacks, in this stage alone."""
    deployer = person("deployer", PermissionsBoundary=BOUNDARY)
    action, resource = CREATES[kind](physical)
    context = {**REGION, "iam__PermissionsBoundary": BOUNDARY}
    assert deployer.may(action, resource, **context), (name, action, resource)
    if "lakegate-dev" in resource:
        other = resource.replace("lakegate-dev", "lakegate-prod")
        named = kind.split("::")[1] not in ("EC2", "ElasticLoadBalancingV2", "RDS")
        assert deployer.may(action, other, **context) is not named, other


@pytest.mark.parametrize("call", list(recorded()), ids=str)
def test_a_deployer_may_make_every_recorded_call(call: Call) -> None:
    """With an own platform it has all three policies, with a given one App and Roles."""
    policies = ("App", "Roles") if call.platform == "given" else ()
    keys = {"iam__PassedToService": "emr-serverless.amazonaws.com"} | REGION
    assert person("deployer", *policies).may(call.action, call.resource, **keys)


SERVICES = ("ops.emr-serverless", "ecs", "elasticloadbalancing", "rds", "pullthroughcache.ecr")


def test_a_deployer_may_make_the_services_own_roles() -> None:
    """An account's first application, cluster and so on need a service-linked role."""
    deployer = person("deployer")
    for service in (*SERVICES, "organizations"):
        role = arn(
            "iam", f"role/aws-service-role/{service}.amazonaws.com/AWSServiceRole", region=""
        )
        name = {"iam__AWSServiceName": f"{service}.amazonaws.com"}
        may = deployer.may("iam:CreateServiceLinkedRole", role, **name)
        assert may is (service in SERVICES), service


def test_a_deployer_gives_no_more_rights_than_the_boundary() -> None:
    """With a boundary every role must have it, and it cannot be removed."""
    role, deployer = (
        arn("iam", "role/lakegate-dev-JobRole-1a2b", region=""),
        person("deployer", PermissionsBoundary=BOUNDARY),
    )
    bound = {"iam__PermissionsBoundary": BOUNDARY}
    for action in ("CreateRole", "PutRolePolicy", "PutRolePermissionsBoundary"):
        assert deployer.may(f"iam:{action}", role, **bound)
        assert not deployer.may(f"iam:{action}", role)
        assert not deployer.may(f"iam:{action}", role, iam__PermissionsBoundary=f"{BOUNDARY}-2")
    for action in ("DeleteRolePermissionsBoundary", "AttachRolePolicy"):
        assert not deployer.may(f"iam:{action}", role, **bound)
    assert person("deployer").may("iam:CreateRole", role)


def test_a_deployer_reaches_no_data_and_passes_roles_to_no_other_service() -> None:
    """It reads no table, no landed object and no report, deletes nothing, and starts no machine."""
    deployer = person("deployer")
    for key in (f"{LAKE}/warehouse/a", f"{LAKE}/reports/a", f"{LANDING}/shop/orders/a.csv"):
        for action in ("GetObject", "PutObject", "DeleteObject", "DeleteObjectVersion"):
            assert not deployer.may(f"s3:{action}", key), (action, key)
    role = arn("iam", "role/lakegate-dev-JobRole-1a2b", region="")
    assert deployer.may("iam:PassRole", role, iam__PassedToService="lambda.amazonaws.com")
    assert not deployer.may("iam:PassRole", role, iam__PassedToService="ec2.amazonaws.com")
    assert not deployer.may("ec2:RunInstances", arn("ec2", "instance/*"))
    admin = arn("iam", "role/admin", region="")
    assert not deployer.may("iam:PassRole", admin, iam__PassedToService="lambda.amazonaws.com")
    assert not deployer.may("iam:PutRolePolicy", admin)


@pytest.mark.parametrize("name", ["uploader", "reader", "page", "deployer"])
def test_a_policy_is_small_enough_and_changes_only_what_it_names(name: str) -> None:
    """IAM accepts each policy with the longest stage and region; wildcards are for reading only."""
    longest = {"Stage": "a" * 18, "PermissionsBoundary": BOUNDARY, "LakeBucketName": "l" * 63}
    found = compiled(name, **longest, LandingPrefix="shop/", KmsKeyArn=KEY, **EMR)
    for resource in found.resources.values():
        document = found.resolve(resource["Properties"]["PolicyDocument"])
        text = json.dumps(document, separators=(",", ":")).replace("us-east-1", "ap-southeast-1")
        assert len(text) <= MOST
        for statement in statements(document):
            wild = [action for action in listed(statement["Action"]) if "*" in action]
            assert [a for a in wild if a.split(":")[1][:3] not in ("Get", "Des", "Lis")] == []


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_every_role_takes_the_boundary(file: Path) -> None:
    """The parameter bounds each role of a stack; without it there is no boundary."""
    roles = {n: r for n, r in template.read(file)["Resources"].items() if "Role" in r["Type"]}
    for given in ({}, {"PermissionsBoundary": BOUNDARY}):
        read = Compiled.of(file, **EMR, **given)
        found = {n: _properties(read, r).get("PermissionsBoundary") for n, r in roles.items()}
        assert found == dict.fromkeys(roles, given.get("PermissionsBoundary"))


def _properties(read: Compiled, resource: Mapping[str, Any]) -> dict[str, Any]:
    return dict(read.resolve(resource["Properties"]))
