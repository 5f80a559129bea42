"""Least privilege, read from the templates as CloudFormation would resolve them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compiled import ACCOUNT, Compiled
from tests.policies import Identity, Statement, listed, statements

ROOT = Path(__file__).parents[3]
FILES = [file for file in (ROOT / "template.yaml", ROOT / "infra/platform.yml") if file.exists()]
APP = Compiled.of(
    ROOT / "template.yaml", EmrApplicationId="00app", SlackTokenSecret="lakegate/slack"
)
ROLES = APP.roles()
LANDING, LAKE = APP.arn("LandingBucket"), APP.arn("LakeBucket")
UUID = "0f0e0d0c-1111-2222-3333-444455556666"
IN_LAKE = (
    *("contracts/shop.orders.yaml", "jobs/0123456789abcdef/main.py", "changes/shop.orders/a.json"),
    *("reports/shop.orders/a/1.json", "baselines/shop.orders.json", "staging/a/1/file.csv"),
    *(f"warehouse/shop/orders_{UUID}/data/a.parquet", "anything"),
    f"warehouse/shop/orders_{UUID}/metadata/a.avro",
)
DELETING = ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutLifecycleConfiguration")
# Actions that AWS can only grant for all resources.
FOR_NO_LESS = {
    "ec2:DescribeNetworkInterfaces": "listing has no resource",
    "ec2:DescribeSubnets": "listing has no resource",
    "ecr:GetAuthorizationToken": "a token is for the registry as a whole",
}


def allowed() -> Iterator[tuple[str, Statement]]:
    """Return every statement that allows something, with the role's name."""
    for file in FILES:
        compiled = APP if file.name == "template.yaml" else Compiled.of(file)
        for name, role in compiled.roles().items():
            for statement in statements(*role.policies):
                if statement["Effect"] == "Allow":
                    yield f"{name}, {statement.get('Sid', '')}", statement


ALLOWED = dict(allowed())


def lake(path: str) -> str:
    return f"{LAKE}/{path}"


def table(action: str, path: str = "") -> tuple[str, str]:
    """Return an action of DynamoDB on the ledger."""
    return f"dynamodb:{action}", f"{APP.arn('LedgerTable')}{path}"


def secret(name: str) -> str:
    return f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:{name}-Ab12Cd"


@pytest.mark.parametrize("where", ALLOWED)
def test_actions_are_named_one_by_one(where: str) -> None:
    """Policies name each action, without `*`, whole services, families or exceptions."""
    statement = ALLOWED[where]
    assert not {"NotAction", "NotResource"} & statement.keys()
    assert [action for action in listed(statement["Action"]) if "*" in action] == []


@pytest.mark.parametrize("where", ALLOWED)
def test_resources_are_named(where: str) -> None:
    """A statement allows all resources only for actions that cannot be restricted."""
    statement = ALLOWED[where]
    everywhere = [r for r in listed(statement["Resource"]) if r in ("*", "arn:aws:s3:::*")]
    if everywhere:
        assert set(listed(statement["Action"])) <= FOR_NO_LESS.keys()


@pytest.mark.parametrize("where", ALLOWED)
def test_roles_are_passed_to_one_service_only(where: str) -> None:
    """Only the job's role may be passed, and only to EMR Serverless."""
    statement = ALLOWED[where]
    if "iam:PassRole" in listed(statement["Action"]):
        service = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
        assert listed(statement["Action"]) == ["iam:PassRole"]
        assert statement["Condition"] == service
        assert listed(statement["Resource"]) == [APP.arn("JobRole")]


@pytest.mark.parametrize("name", ROLES)
def test_nobody_manages_what_is_deployed(name: str) -> None:
    """No role changes policies, roles, functions or buckets."""
    for action in ("iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:CreateRole"):
        assert not ROLES[name].may(action, APP.arn("JobRole"))
    for action in ("s3:PutBucketPolicy", "s3:DeleteBucket", "s3:PutBucketVersioning"):
        assert not ROLES[name].may(action, LAKE)
    for function in (n for n, r in APP.resources.items() if n.endswith("LambdaFunction")):
        assert not ROLES[name].may("lambda:UpdateFunctionCode", APP.arn(function))


def test_the_upload_function_writes_nothing_in_the_lake() -> None:
    """The upload function can change neither data nor the contracts."""
    for path in IN_LAKE:
        assert not ROLES["OnUploadRole"].may("s3:PutObject", lake(path)), path
    assert not ROLES["OnUploadRole"].may("s3:GetObject", f"{LANDING}/shop/orders/a.csv")


@pytest.mark.parametrize("name", ["OnUploadRole", "OnJobRunRole", "SweepRole", "ActRole"])
def test_who_starts_jobs_reads_manifests_and_no_data(name: str) -> None:
    """These roles list the landing bucket and read only the manifests of batches."""
    for action in ("s3:GetObject", "s3:GetObjectVersion"):
        assert ROLES[name].may(action, f"{LANDING}/batches/monday/_manifest.json")
        assert not ROLES[name].may(action, f"{LANDING}/batches/monday/orders.parquet")
    assert ROLES[name].may("s3:ListBucketVersions", LANDING)
    application = f"arn:aws:emr-serverless:us-east-1:{ACCOUNT}:/applications/00app"
    assert ROLES[name].may("emr-serverless:StartJobRun", application)


@pytest.mark.parametrize("name", sorted(ROLES))
def test_only_the_clean_up_deletes_in_the_lake(name: str) -> None:
    """Only the clean-up may delete or expire files and contracts, and no role landed objects."""
    role = ROLES[name]
    for action in DELETING:
        assert not role.may(action, f"{LANDING}/shop/orders/a.csv"), action
        assert not role.may(action, LANDING), action
        assert not role.may(action, LAKE), action
        for path in IN_LAKE:
            is_its = path.startswith(("warehouse/", "contracts/"))
            may = name == "CleanUpRole" and action == DELETING[0] and is_its
            assert role.may(action, lake(path)) is may, (action, path)


def test_the_job_reads_what_landed_and_writes_tables_and_reports() -> None:
    """The job's role reads one landing bucket and writes only its parts of the lake."""
    job = ROLES["JobRole"]
    assert job.may("s3:GetObjectVersion", f"{LANDING}/shop/orders/a.csv")
    assert not job.may("s3:PutObject", f"{LANDING}/shop/orders/a.csv")
    assert not job.may("s3:GetObject", "arn:aws:s3:::lakegate-other-landing/a.csv")
    written = [path for path in IN_LAKE if job.may("s3:PutObject", lake(path))]
    assert {path.split("/")[0] for path in written} == {"warehouse", "reports", "staging"}
    assert not job.may("s3:GetObject", lake("anything"))


def test_the_job_reaches_no_ledger_no_queue_and_no_other_secret() -> None:
    """The job reads its own token and reaches nothing that decides about publishing."""
    job = ROLES["JobRole"]
    for action in ("GetItem", "PutItem", "Query", "Scan", "UpdateItem", "DeleteItem"):
        assert not job.may(*table(action))
    for queue in (name for name, r in APP.resources.items() if r["Type"] == "AWS::SQS::Queue"):
        for action in ("sqs:SendMessage", "sqs:ReceiveMessage", "sqs:PurgeQueue"):
            assert not job.may(action, APP.arn(queue))
    stage = APP.parameters["Stage"]
    assert job.may("secretsmanager:GetSecretValue", secret(f"lakegate/{stage}/nessie/job"))
    for other in ("publisher", "uploader", "reader", "signing-key", "job-of-another"):
        name = f"lakegate/{stage}/nessie/{other}"
        assert not job.may("secretsmanager:GetSecretValue", secret(name)), other


@pytest.mark.parametrize("name", sorted(ROLES))
def test_nobody_reads_the_signing_key(name: str) -> None:
    """Only the command line signs tokens; functions and job read their own."""
    key = secret(f"lakegate/{APP.parameters['Stage']}/nessie/signing-key")
    assert not ROLES[name].may("secretsmanager:GetSecretValue", key)


@pytest.mark.parametrize("name", sorted(ROLES))
def test_items_of_the_ledger_are_never_deleted(name: str) -> None:
    """No role may delete items of the ledger."""
    for action in ("DeleteItem", "DeleteTable", "BatchWriteItem"):
        assert not ROLES[name].may(*table(action))


@pytest.mark.parametrize("name", sorted(ROLES))
def test_roles_are_taken_by_the_service_that_they_are_for(name: str) -> None:
    """Only Lambda may assume a function's role, and only EMR Serverless the job's."""
    for statement in statements(APP.trust(name)):
        principal = statement["Principal"]
        assert principal != "*"
        if "AWS" in principal:
            assert name == "CleanUpRole"
            assert principal["AWS"] == f"arn:aws:iam::{ACCOUNT}:root"
        else:
            service = "emr-serverless" if name == "JobRole" else "lambda"
            assert principal["Service"] == f"{service}.amazonaws.com"


@pytest.mark.parametrize("name", ["OnUploadRole", "OnJobRunRole", "SweepRole"])
def test_who_starts_jobs_may_do_all_that_it_takes(name: str) -> None:
    """Roles that start runs may tag them and pass the job's role; only uploads cannot read runs."""
    application = f"arn:aws:emr-serverless:us-east-1:{ACCOUNT}:/applications/00app"
    role, run = ROLES[name], f"{application}/jobruns/00f1"
    emr = {"iam__PassedToService": "emr-serverless.amazonaws.com"}
    assert role.may("emr-serverless:StartJobRun", application)
    assert role.may("emr-serverless:TagResource", run)
    assert role.may("iam:PassRole", APP.arn("JobRole"), **emr)
    assert not role.may(
        "iam:PassRole", APP.arn("JobRole"), iam__PassedToService="ec2.amazonaws.com"
    )
    assert not role.may("iam:PassRole", APP.arn("CleanUpRole"), **emr)
    assert role.may("emr-serverless:GetJobRun", run) is (name != "OnUploadRole")
    assert role.may("emr-serverless:ListJobRuns", application) is (name == "SweepRole")
    other = application.replace("00app", "00other")
    assert not role.may("emr-serverless:StartJobRun", other)


def test_queues_take_messages_from_their_source_alone() -> None:
    """A queue's policy names the sending service and its source."""
    for statement in statements(*APP.queue_policies()):
        assert statement["Effect"] == "Deny" or statement["Condition"]
        assert listed(statement["Action"]) == ["sqs:SendMessage"] or statement["Effect"] == "Deny"


def test_the_buckets_policies_deny_what_no_role_should_have() -> None:
    """The buckets deny deletions in the lake, also to administrators, and access without TLS."""
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    admin = Identity(f"arn:aws:iam::{ACCOUNT}:role/admin", [everything])
    for bucket in (LANDING, LAKE):
        policy, tls = APP.bucket_policies()[bucket], {"aws__SecureTransport": "true"}
        assert admin.may("s3:GetObject", f"{bucket}/a", policy, **tls)
        assert not admin.may("s3:GetObject", f"{bucket}/a", policy, aws__SecureTransport="false")
    policy, data = APP.bucket_policies()[LAKE], lake(IN_LAKE[-1])
    for action in DELETING[:2]:
        assert not admin.may(action, data, policy, **tls), action
    assert ROLES["CleanUpRole"].may("s3:DeleteObject", data, policy, **tls)


def test_what_expires_in_the_lake_is_changed_through_the_template() -> None:
    """Only CloudFormation may change the lake's lifecycle rules."""
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    admin = Identity(f"arn:aws:iam::{ACCOUNT}:role/admin", [everything])
    policy, tls = APP.bucket_policies()[LAKE], {"aws__SecureTransport": "true"}
    by_template = {**tls, "aws__CalledViaFirst": "cloudformation.amazonaws.com"}
    assert not admin.may("s3:PutLifecycleConfiguration", LAKE, policy, **tls)
    assert admin.may("s3:PutLifecycleConfiguration", LAKE, policy, **by_template)


def test_queues_are_reached_by_tls_alone() -> None:
    """Every queue denies requests without TLS."""
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    admin = Identity(f"arn:aws:iam::{ACCOUNT}:role/admin", [everything])
    for queue in (name for name, r in APP.resources.items() if r["Type"] == "AWS::SQS::Queue"):
        for secure in ("true", "false"):
            policies = APP.queue_policies()
            may = admin.may(
                "sqs:SendMessage", APP.arn(queue), *policies, aws__SecureTransport=secure
            )
            assert may is (secure == "true"), queue


def test_only_alerts_read_where_they_were_posted() -> None:
    """Only the alert function reads and writes the table of threads."""
    for name, role in ROLES.items():
        for action in ("GetItem", "PutItem", "UpdateItem", "DeleteItem"):
            may = role.may(f"dynamodb:{action}", APP.arn("ThreadsTable"))
            assert may is (name == "OnAlertRole"), (name, action)
        assert not role.may("dynamodb:Scan", APP.arn("ThreadsTable"))


def test_alerts_are_published_to_the_one_topic_that_was_named() -> None:
    """Only the alert function may publish to the topic; without a topic no role may publish."""
    topic = f"arn:aws:sns:us-east-1:{ACCOUNT}:people"
    compiled = Compiled.of(ROOT / "template.yaml", EmrApplicationId="00app", AlertTopicArn=topic)
    for name, role in compiled.roles().items():
        assert role.may("sns:Publish", topic) is (name == "OnAlertRole"), name
        assert not role.may("sns:Publish", f"{topic}-of-others"), name
    assert not ROLES["OnAlertRole"].may("sns:Publish", topic)


def test_the_digest_reads_the_ledger_and_changes_nothing() -> None:
    """The digest's role lists by day and by state and gets items without a summary."""
    digest = ROLES["DigestRole"]
    assert digest.may(*table("Query", "/index/by_day"))
    assert digest.may(*table("Query", "/index/by_state"))
    assert digest.may(*table("GetItem"))
    for action in ("PutItem", "UpdateItem", "Scan", "BatchGetItem"):
        assert not digest.may(*table(action)), action
