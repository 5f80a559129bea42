"""Least privilege, read from the templates as CloudFormation would resolve them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import template
from tests.compiled import ACCOUNT, EVERYTHING, Compiled, application
from tests.policies import Identity, Statement, listed, statements

ROOT = Path(__file__).parents[3]
FILES = [file for file in (ROOT / "template.yaml", ROOT / "infra/platform.yml") if file.exists()]
APP = application(SlackTokenSecret="lakegate/slack")
ROLES = APP.roles()
LANDING, LAKE = APP.arn("LandingBucket"), APP.arn("LakeBucket")
UUID = "0f0e0d0c-1111-2222-3333-444455556666"
IN_LAKE = (
    *("contracts/shop.orders.yaml", "changes/shop.orders/a.json"),
    *("jobs/0123456789abcdef/main.py", "jobs/0123456789abcdef/libraries.zip"),
    *("reports/shop.orders/a/1.json", "baselines/shop.orders.json", "staging/a/1/file.csv"),
    *(f"warehouse/shop/orders_{UUID}/data/a.parquet", "anything"),
    f"warehouse/shop/orders_{UUID}/metadata/a.avro",
)
ADMIN = Identity(
    f"arn:aws:iam::{ACCOUNT}:role/admin",
    [{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}],
)
APPLICATION = f"arn:aws:emr-serverless:us-east-1:{ACCOUNT}:/applications/00app"
APPLICATIONS = [APPLICATION, APPLICATION.replace("00app", "00shared")]
QUEUES = [APP.arn(n) for n, r in APP.resources.items() if r["Type"] == "AWS::SQS::Queue"]
TOKENS = ("uploader", "job", "publisher", "reader", "writer")
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
def test_actions_and_resources_are_named_one_by_one(where: str) -> None:
    """Policies name each action, without `*`, whole services, families or exceptions.

    All resources are allowed only for actions that cannot be restricted, and only the job's role
    may be passed, and only to EMR Serverless.
    """
    statement = ALLOWED[where]
    actions, on = listed(statement["Action"]), listed(statement["Resource"])
    assert not {"NotAction", "NotResource"} & statement.keys()
    assert [action for action in actions if "*" in action] == []
    if {"*", "arn:aws:s3:::*"} & set(map(str, on)):
        assert set(actions) <= FOR_NO_LESS.keys()
    if "iam:PassRole" in actions:
        service = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
        assert (actions, on) == (["iam:PassRole"], [APP.arn("JobRole")])
        assert statement["Condition"] == service


@pytest.mark.parametrize("name", ROLES)
def test_nobody_manages_what_is_deployed(name: str) -> None:
    """No role changes policies, roles, functions or buckets."""
    for action in ("iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:CreateRole"):
        assert not ROLES[name].may(action, APP.arn("JobRole"))
    for action in ("s3:PutBucketPolicy", "s3:DeleteBucket", "s3:PutBucketVersioning"):
        assert not ROLES[name].may(action, LAKE)
    for function in (n for n, r in APP.resources.items() if n.endswith("LambdaFunction")):
        assert not ROLES[name].may("lambda:UpdateFunctionCode", APP.arn(function))


@pytest.mark.parametrize("name", sorted(ROLES))
def test_items_of_the_ledger_are_never_deleted(name: str) -> None:
    """No role may delete items of the ledger."""
    for action in ("DeleteItem", "DeleteTable", "BatchWriteItem"):
        assert not ROLES[name].may(*table(action))


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
    assert ROLES[name].may("emr-serverless:StartJobRun", APPLICATION)


@pytest.mark.parametrize("name", sorted(ROLES))
def test_only_the_clean_up_deletes_in_the_lake(name: str) -> None:
    """Only the clean-up may delete or expire files and contracts, and no role landed objects."""
    role = ROLES[name]
    for action in DELETING:
        assert not role.may(action, f"{LANDING}/shop/orders/a.csv"), action
        assert not role.may(action, LANDING), action
        assert not role.may(action, LAKE), action
        for path in IN_LAKE:
            its = {"CleanUpRole": ("warehouse/", "contracts/"), "ExpireRole": ("warehouse/",)}
            may = action == DELETING[0] and path.startswith(its.get(name, ()))
            assert role.may(action, lake(path)) is may, (action, path)


def test_the_job_reads_what_landed_and_writes_tables_and_reports() -> None:
    """The job's role reads one landing bucket and writes only its parts of the lake."""
    job = ROLES["JobRole"]
    assert job.may("s3:GetObjectVersion", f"{LANDING}/shop/orders/a.csv")
    assert not job.may("s3:PutObject", f"{LANDING}/shop/orders/a.csv")
    assert not job.may("s3:GetObject", "arn:aws:s3:::lakegate-other-landing/a.csv")
    written = [path for path in IN_LAKE if job.may("s3:PutObject", lake(path))]
    assert {path.split("/")[0] for path in written} == {"warehouse", "reports", "staging"}
    for path in IN_LAKE:
        if path.startswith("jobs/"):
            assert job.may("s3:GetObject", lake(path)), path
    assert not job.may("s3:GetObject", lake("anything"))


def test_the_job_reaches_no_ledger_and_no_other_secret() -> None:
    """The job reads its own token, and no ledger."""
    job = ROLES["JobRole"]
    for action in ("GetItem", "PutItem", "Query", "Scan", "UpdateItem", "DeleteItem"):
        assert not job.may(*table(action))
    stage = APP.parameters["Stage"]
    assert job.may("secretsmanager:GetSecretValue", secret(f"lakegate/{stage}/nessie/job"))
    for other in ("publisher", "uploader", "reader", "signing-key", "job-of-another"):
        name = f"lakegate/{stage}/nessie/{other}"
        assert not job.may("secretsmanager:GetSecretValue", secret(name)), other


TAKING = {"ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes"}


def test_the_job_takes_files_from_one_queue_and_names_reports_in_another() -> None:
    """The job's role takes from the work queue and sends to that of ended runs; no more of SQS."""
    rights = {APP.arn("WorkQueue"): TAKING, APP.arn("JobRunQueue"): {"SendMessage"}}
    for queue in QUEUES:
        for action in (*TAKING, "SendMessage", "PurgeQueue", "SetQueueAttributes"):
            may = action in rights.get(queue, ())
            assert ROLES["JobRole"].may(f"sqs:{action}", queue) is may, (action, queue)


@pytest.mark.parametrize("name", sorted(ROLES))
def test_alerts_alone_are_put_off(name: str) -> None:
    """Slack asks for pauses; all other messages come again when their queue says so."""
    for queue in QUEUES:
        of_alerts = name == "OnAlertRole" and queue == APP.arn("AlertQueue")
        of_files = name == "JobRole" and queue == APP.arn("WorkQueue")
        may = ROLES[name].may("sqs:ChangeMessageVisibility", queue)
        assert may is (of_alerts or of_files), queue


@pytest.mark.parametrize("name", sorted(ROLES))
def test_who_starts_jobs_sends_files_to_shared_runs(name: str) -> None:
    """The roles that start files' runs alone send to the work queue; only the job takes."""
    role, queue = ROLES[name], APP.arn("WorkQueue")
    starts = role.may("emr-serverless:StartJobRun", APPLICATION) and name != "CompactRole"
    assert role.may("sqs:SendMessage", queue) is starts
    counts = starts or name in ("JobRole", "CheckupRole")
    assert role.may("sqs:GetQueueAttributes", queue) is counts
    for action in ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"):
        assert role.may(f"sqs:{action}", queue) is (name == "JobRole"), action


@pytest.mark.parametrize("name", sorted(ROLES))
def test_only_the_rotation_reads_the_signing_key(name: str) -> None:
    """One function signs tokens and stores them; no role stores or creates a key."""
    folder, is_its = f"lakegate/{APP.parameters['Stage']}/nessie", name == "RotateRole"
    for text in ("signing-key", *TOKENS):
        for action in ("PutSecretValue", "CreateSecret", "DeleteSecret", "GetSecretValue"):
            may = ROLES[name].may(f"secretsmanager:{action}", secret(f"{folder}/{text}"))
            if text == "signing-key" or action != "GetSecretValue":
                renews = action == "PutSecretValue" and text != "signing-key"
                assert may is (is_its and (action == "GetSecretValue" or renews)), (action, text)
    other = secret("lakegate/other/nessie/signing-key")
    assert not ROLES[name].may("secretsmanager:GetSecretValue", other)


@pytest.mark.parametrize("name", sorted(ROLES))
def test_roles_are_taken_by_the_service_that_they_are_for(name: str) -> None:
    """Only Lambda may assume a function's role, only EMR the job's, and nobody that for people."""
    for statement in statements(APP.trust(name)):
        principal = statement["Principal"]
        if name == "CleanUpRole":
            assert (statement["Effect"], principal) == ("Deny", {"AWS": "*"})
        else:
            service = "emr-serverless" if name == "JobRole" else "lambda"
            assert principal == {"Service": f"{service}.amazonaws.com"}


def test_a_stage_can_name_who_may_discard() -> None:
    """With TrustedPrincipal only that role or user may take the role that deletes."""
    ann = f"arn:aws:iam::{ACCOUNT}:role/stewards"
    (trust,) = statements(application(TrustedPrincipal=ann).trust("CleanUpRole"))
    allowed = {"Effect": "Allow", "Principal": {"AWS": ann}, "Action": "sts:AssumeRole"}
    assert trust == allowed


def test_who_may_discard_can_change_nothing_else() -> None:
    """The role for people deletes in the lake and invokes one function; it reads no secret."""
    person = ROLES["CleanUpRole"]
    allowed = [s for s in statements(*person.policies) if s["Effect"] == "Allow"]
    actions = {action for statement in allowed for action in listed(statement["Action"])}
    invoke = "lambda:InvokeFunction"
    assert actions == {"s3:DeleteObject", "s3:GetObject", "s3:ListBucket", invoke}
    functions = [n for n, r in APP.resources.items() if n.endswith("LambdaFunction")]
    assert [n for n in functions if person.may(invoke, APP.arn(n))] == ["ExpireLambdaFunction"]
    for path in IN_LAKE:
        assert person.may("s3:GetObject", lake(path)) is ("/metadata/" in path), path


PUBLISHING = {"OnJobRunRole", "SweepRole", "ActRole", "ExpireRole", "RotateRole", "CompactRole"}


@pytest.mark.parametrize("name", sorted(ROLES))
def test_only_functions_that_publish_or_clean_up_read_the_publishers_token(name: str) -> None:
    """The token that may change main is readable for functions that need it, and for no person."""
    token = secret(f"lakegate/{APP.parameters['Stage']}/nessie/publisher")
    may = ROLES[name].may("secretsmanager:GetSecretValue", token)
    assert may is (name in PUBLISHING)
    if may:
        (trust,) = statements(APP.trust(name))
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


@pytest.mark.parametrize("name", sorted(PUBLISHING - {"ExpireRole", "RotateRole", "CompactRole"}))
def test_who_publishes_keeps_what_published_files_measured(name: str) -> None:
    """Whoever publishes files together records them at once, and what they measured with them."""
    for action in ("s3:GetObject", "s3:PutObject"):
        assert ROLES[name].may(action, lake("baselines/shop.orders.json")), action


@pytest.mark.parametrize("name", ["OnUploadRole", "OnJobRunRole", "SweepRole", "CompactRole"])
def test_who_starts_jobs_may_do_all_that_it_takes(name: str) -> None:
    """Roles that start runs may tag them, look whether they are up, and pass the job's role."""
    role, runs = ROLES[name], [f"{each}/jobruns/00f1" for each in APPLICATIONS]
    emr = {"iam__PassedToService": "emr-serverless.amazonaws.com"}
    assert all(role.may("emr-serverless:TagResource", run) for run in runs)
    assert all(role.may("emr-serverless:StartJobRun", each) for each in APPLICATIONS)
    assert role.may("iam:PassRole", APP.arn("JobRole"), **emr)
    assert not role.may(
        "iam:PassRole", APP.arn("JobRole"), iam__PassedToService="ec2.amazonaws.com"
    )
    assert not role.may("iam:PassRole", APP.arn("CleanUpRole"), **emr)
    assert all(role.may("emr-serverless:GetJobRun", run) for run in runs)
    lists = [role.may("emr-serverless:ListJobRuns", each) for each in APPLICATIONS]
    assert lists == [name == "SweepRole"] * 2
    other = APPLICATION.replace("00app", "00other")
    assert not role.may("emr-serverless:StartJobRun", other)


@pytest.mark.parametrize("name", ["Expire", "Compact"])
def test_what_reads_all_tables_has_time_and_a_processor(name: str) -> None:
    """The daily functions read each table's metadata, and no rule gives the sweep their work."""
    function = APP.resources[f"{name}LambdaFunction"]["Properties"]
    assert (function["Timeout"], function["MemorySize"]) == (900, 2048)
    (target,) = APP.resources[f"{name}Rule"]["Properties"]["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [f"{name}LambdaFunction", "Arn"]}
    rules = [each for each in APP.resources.values() if each["Type"] == "AWS::Events::Rule"]
    assert str(rules).count("'SweepLambdaFunction'") == 1


def test_who_starts_compactions_reads_tables_metadata_and_writes_the_ledger_alone() -> None:
    """The role sees which tables have many small files; it changes nothing in the lake."""
    role = ROLES["CompactRole"]
    assert role.may("s3:GetObject", lake(f"warehouse/shop/orders_{UUID}/metadata/a.avro"))
    assert role.may("s3:GetObject", lake("contracts/shop.orders.yaml"))
    assert role.may(*table("UpdateItem"))
    for path in IN_LAKE:
        assert not role.may("s3:PutObject", lake(path)), path
        assert role.may("s3:GetObject", lake(path)) is ("/metadata/" in path or "contracts" in path)
    for queue in QUEUES:
        assert not role.may("sqs:SendMessage", queue)


def test_both_applications_and_no_other_are_let_in() -> None:
    """The job's role trusts the runs of both applications, and the ends of their runs are heard."""
    (trust,) = statements(APP.trust("JobRole"))
    assert trust["Condition"]["ArnLike"]["aws:SourceArn"] == APPLICATIONS
    (pattern,) = (
        APP.resolve(each["Properties"]["EventPattern"])
        for name, each in APP.resources.items()
        if name == "JobRunRule"
    )
    assert pattern["detail"]["applicationId"] == ["00app", "00shared"]


def test_queues_take_messages_from_their_source_alone() -> None:
    """A queue's policy names the sending service and its source."""
    for statement in statements(*APP.queue_policies()):
        assert statement["Effect"] == "Deny" or statement["Condition"]
        assert listed(statement["Action"]) == ["sqs:SendMessage"] or statement["Effect"] == "Deny"


def test_the_buckets_policies_deny_what_no_role_should_have() -> None:
    """The buckets deny deletions in the lake, also to administrators, and access without TLS."""
    for bucket in (LANDING, LAKE):
        policy, tls = APP.bucket_policies()[bucket], {"aws__SecureTransport": "true"}
        assert ADMIN.may("s3:GetObject", f"{bucket}/a", policy, **tls)
        assert not ADMIN.may("s3:GetObject", f"{bucket}/a", policy, aws__SecureTransport="false")
    policy, data = APP.bucket_policies()[LAKE], lake(IN_LAKE[-1])
    for action in DELETING[:2]:
        assert not ADMIN.may(action, data, policy, **tls), action
    for name in ("CleanUpRole", "ExpireRole"):
        assert ROLES[name].may("s3:DeleteObject", data, policy, **tls)


def test_what_expires_in_the_lake_is_changed_through_the_template() -> None:
    """Only CloudFormation may change the lake's lifecycle rules."""
    policy, tls = APP.bucket_policies()[LAKE], {"aws__SecureTransport": "true"}
    by_template = {**tls, "aws__CalledViaFirst": "cloudformation.amazonaws.com"}
    assert not ADMIN.may("s3:PutLifecycleConfiguration", LAKE, policy, **tls)
    assert ADMIN.may("s3:PutLifecycleConfiguration", LAKE, policy, **by_template)


def test_a_function_that_queues_its_own_next_message_may_go_round() -> None:
    """Lambda drops the seventeenth message of a chain where its function does not allow loops."""
    every = {n: r["Properties"] for n, r in APP.resources.items() if n.endswith("Mapping")}
    round_trips = set()
    for each in every.values():
        function = each["FunctionName"]["Fn::GetAtt"][0]
        role = APP.resources[function]["Properties"]["Role"]["Fn::GetAtt"][0]
        if ROLES[role].may("sqs:SendMessage", APP.arn(each["EventSourceArn"]["Fn::GetAtt"][0])):
            round_trips.add(function)
    allowed = {n for n, r in APP.resources.items() if r.get("Properties", {}).get("RecursiveLoop")}
    assert round_trips == allowed == {"ActLambdaFunction"}


def test_queues_are_reached_by_tls_alone() -> None:
    """Every queue denies requests without TLS."""
    policies = APP.queue_policies()
    for queue in QUEUES:
        assert ADMIN.may("sqs:SendMessage", queue, *policies, aws__SecureTransport="true")
        assert not ADMIN.may("sqs:SendMessage", queue, *policies, aws__SecureTransport="false")


def test_an_existing_lake_takes_the_place_of_the_stages_own() -> None:
    """With its name no bucket is made for the lake, and each role may do there what it did."""
    theirs = application(LakeBucketName="lake-7")
    for name in ("LakeBucket", "LakeBucketPolicy"):
        assert theirs.resources[name]["Condition"] == "OwnLake"
    assert not theirs.holds("OwnLake")
    for name, role in theirs.roles().items():
        for path in IN_LAKE:
            for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
                may = role.may(action, f"arn:aws:s3:::lake-7/{path}")
                assert may is ROLES[name].may(action, lake(path)), (name, action, path)
                assert not role.may(action, lake(path))
        assert role.may("s3:ListBucket", "arn:aws:s3:::lake-7") is ROLES[name].may(
            "s3:ListBucket", LAKE
        )


THEIR_BUCKETS = ["arn:aws:s3:::their-files", "arn:aws:s3:::till-files"]
MORE = application(LandingBucketArns=",".join(THEIR_BUCKETS))


@pytest.mark.parametrize("name", sorted(ROLES))
def test_landing_buckets_of_others_are_read_as_the_stages_own(name: str) -> None:
    """A role may do in them what it may do in the own one, and reaches no other."""
    role = MORE.roles()[name]
    for bucket in THEIR_BUCKETS:
        for action in ("s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject"):
            for path in ("/a.csv", "/batches/monday/_manifest.json"):
                assert role.may(action, bucket + path) is role.may(action, LANDING + path)
        for action in ("s3:ListBucketVersions", "s3:GetBucketNotification"):
            assert role.may(action, bucket) is role.may(action, LANDING), action
        assert not role.may("s3:PutBucketNotification", bucket)
        assert not role.may("s3:GetObject", f"{bucket}-of-another/a.csv")
        assert not ROLES[name].may("s3:GetObject", f"{bucket}/a.csv")


def test_events_of_named_buckets_reach_the_queue_alone() -> None:
    """EventBridge's rule matches new objects of the named buckets, and its queue takes no other."""
    rule = MORE.resolve(MORE.resources["UploadRule"]["Properties"])
    assert rule["EventPattern"]["resources"] == THEIR_BUCKETS
    allowed = [s for s in statements(*MORE.queue_policies()) if s["Effect"] == "Allow"]
    from_events = [s for s in allowed if s["Principal"] == {"Service": "events.amazonaws.com"}]
    to_uploads = [s for s in from_events if s["Resource"] == MORE.arn("UploadQueue")]
    assert [s["Condition"] for s in to_uploads] == [
        {"ArnEquals": {"aws:SourceArn": MORE.arn("UploadRule")}}
    ]
    assert "UploadRule" not in str(APP.queue_policies())


def test_the_policy_for_a_bucket_of_another_account_allows_what_roles_do_there() -> None:
    """The page has each right, and no other; it names the stage's roles, as CloudFormation does."""
    page = (ROOT / "docs" / "buckets.md").read_text()
    (text,) = re.findall(r'\{"Effect": "Allow", "Principal": .+?\}\}\}', page, re.DOTALL)
    policy = json.loads(text.replace("STAGE_ACCOUNT", ACCOUNT).replace("STAGE", "dev"))
    asked = {
        action
        for role in MORE.roles().values()
        for statement in statements(*role.policies)
        if any(each.startswith("arn:aws:s3:::their") for each in listed(statement["Resource"]))
        for action in listed(statement["Action"])
    }
    assert set(policy["Action"]) == asked
    assert policy["Condition"]["ArnLike"]["aws:PrincipalArn"].endswith(":role/lakegate-dev-*")


KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/ours"
THEIRS = [f"arn:aws:kms:us-east-1:{ACCOUNT}:key/{name}" for name in ("shop", "till")]
KEYED = application(**EVERYTHING, KmsKeyArn=KEY, ProducerKeyArns=",".join(THEIRS))
# The actions of a service that take a data key, and those that take only its decryption. Sending a
# message proves the data key by decrypting it.
TAKING_KEYS = {
    "s3": (("s3:PutObject",), ("s3:GetObject", "s3:GetObjectVersion")),
    "sqs": (("sqs:SendMessage",), ("sqs:SendMessage", "sqs:ReceiveMessage")),
    "dynamodb": (
        (),
        tuple(f"dynamodb:{n}" for n in ("BatchGetItem", "GetItem", "PutItem", "Query", "Scan")),
    ),
    "secretsmanager": (("secretsmanager:PutSecretValue",), ("secretsmanager:GetSecretValue",)),
    "sns": (("sns:Publish",), ("sns:Publish",)),
}


MOST_KEYS, MOST_BUCKETS = 15, 5


def test_the_largest_policies_fit_a_role() -> None:
    """With all that a stage may name, and the longest names, no role has too long policies."""
    keys = [f"arn:aws:kms:ap-southeast-2:{ACCOUNT}:key/mrk-{n:032}" for n in range(MOST_KEYS)]
    named = {
        "Stage": "a" * 20,
        "LakeBucketName": "l" * 63,
        "KmsKeyArn": keys[0],
        "ProducerKeyArns": ",".join(keys),
        "LandingBucketArns": ",".join(f"arn:aws:s3:::{n:063}" for n in range(MOST_BUCKETS)),
    }
    for name, value in named.items():
        pattern = template.read(ROOT / "template.yaml")["Parameters"][name]["AllowedPattern"]
        assert re.fullmatch(pattern, value), name
        if name.endswith("Arns"):
            assert not re.fullmatch(pattern, f"{value},{value.rpartition(',')[2]}"), name
    for name, role in application(**EVERYTHING, **named).roles().items():
        size = sum(len(re.sub(r"\s", "", json.dumps(policy))) for policy in role.policies)
        assert size <= 10_240, name  # characters without white space (IAM quotas)


PLATFORM = Compiled.of(ROOT / "infra/platform.yml", KmsKeyArn=KEY)
KEYED_ROLES = PLATFORM.roles() | KEYED.roles()


@pytest.mark.parametrize("service", TAKING_KEYS)
@pytest.mark.parametrize("name", sorted(KEYED_ROLES))
def test_a_role_uses_the_key_for_what_it_does(name: str, service: str) -> None:
    """A role may use the key through a service exactly as what it may do there takes it."""
    role, via = KEYED_ROLES[name], {"kms__ViaService": f"{service}.us-east-1.amazonaws.com"}
    granted = [s for s in statements(*role.policies) if s["Effect"] == "Allow"]
    actions = {action for statement in granted for action in listed(statement["Action"])}
    for action, takers in zip(
        ("kms:GenerateDataKey", "kms:Decrypt"), TAKING_KEYS[service], strict=True
    ):
        assert role.may(action, KEY, **via) is bool(actions & set(takers)), action
        assert not role.may(action, f"{KEY}-of-another", **via)
        assert not role.may(action, KEY), "only through a service"


@pytest.mark.parametrize("name", sorted(ROLES))
def test_only_who_reads_landed_bytes_uses_the_producers_keys(name: str) -> None:
    """The job and the readers of manifests decrypt by the named keys, through S3 alone."""
    role, via = KEYED.roles()[name], {"kms__ViaService": "s3.us-east-1.amazonaws.com"}
    reads = role.may("s3:GetObject", f"{LANDING}/batches/monday/_manifest.json")
    for key in THEIRS:
        assert role.may("kms:Decrypt", key, **via) is reads
        assert not role.may("kms:GenerateDataKey", key, **via)
        assert not role.may("kms:Decrypt", key, kms__ViaService="sqs.us-east-1.amazonaws.com")


def test_without_a_key_no_role_has_a_right_on_any() -> None:
    """With the parameters empty no policy names an action of KMS."""
    found = [file for file in FILES if "kms:" in str(Compiled.of(file, **EVERYTHING).roles())]
    assert found == []


def test_everything_that_stores_is_encrypted_by_the_key() -> None:
    """Each bucket, table, queue, log group and topic names the key; without one none does."""
    named = {
        "AWS::S3::Bucket": "BucketEncryption",
        "AWS::DynamoDB::Table": "SSESpecification",
        "AWS::SQS::Queue": "KmsMasterKeyId",
        "AWS::Logs::LogGroup": "KmsKeyId",
        "AWS::SNS::Topic": "KmsMasterKeyId",
        "AWS::SecretsManager::Secret": "KmsKeyId",
    }
    for file in FILES:
        for given in (KEY, ""):
            read = Compiled.of(file, **EVERYTHING, KmsKeyArn=given)
            for name, resource in read.resources.items():
                if by := named.get(resource["Type"]):
                    encrypted = read.resolve(resource["Properties"]).get(by, "")
                    assert (KEY in str(encrypted)) is bool(given), name


def test_a_database_has_the_key_that_it_was_made_with() -> None:
    """Another parameter names it, as RDS changes no database's key."""
    for given in (KEY, ""):
        file = ROOT / "infra/platform.yml"
        read = Compiled.of(file, KmsKeyArn=KEY, DatabaseKeyArn=given)
        made = read.resolve(read.resources["Database"]["Properties"])
        assert made.get("KmsKeyId", "") == given


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
    for name, role in application(AlertTopicArn=topic).roles().items():
        assert role.may("sns:Publish", topic) is (name == "OnAlertRole"), name
        assert not role.may("sns:Publish", f"{topic}-of-others"), name
    assert not ROLES["OnAlertRole"].may("sns:Publish", topic)


def test_the_order_of_files_is_kept_as_they_land() -> None:
    """Every function that starts an attempt finds the files of the table that come before it."""
    for name in ("OnUploadRole", "OnJobRunRole", "ActRole", "SweepRole"):
        assert ROLES[name].may(*table("Query", "/index/waiting")), name


def test_the_digest_reads_the_ledger_and_changes_nothing() -> None:
    """The digest's role lists by day and what failed, and gets items without a summary."""
    digest = ROLES["DigestRole"]
    assert digest.may(*table("Query", "/index/by_day"))
    assert digest.may(*table("Query", "/index/failed"))
    assert digest.may(*table("GetItem"))
    for action in ("PutItem", "UpdateItem", "Scan", "BatchGetItem"):
        assert not digest.may(*table(action)), action
