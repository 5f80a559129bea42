"""The parameters of a stage's stack and the names of its parts."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from infra import template
from infra.aws.facts import PLATFORM, check_platform
from infra.aws.losses import database_key, refuse_another_key, refuse_another_lake
from infra.aws.site import Site, choices, connect, has_own_platform
from infra.stack_spec import is_production, parameters, refuse_unfit, refuse_unknown
from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError

_ROOT = Path(__file__).parents[3]
_STAGE = Stage("shop", "123456789012", "eu-central-1")
_TEMPLATE = {
    "Parameters": {
        "Stage": {"Type": "String"},
        "NessieUri": {"Type": "AWS::SSM::Parameter::Value<String>"},
        "EmrApplicationId": {"Type": "AWS::SSM::Parameter::Value<String>"},
        "SlackChannel": {"Type": "String"},
    }
}


_ONE = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": "1", "Type": "String", "Value": "1"}}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Yield the site of a stage that has nothing."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield connect(_STAGE, boto3.client, lambda _: None)


def deployed(site: Site, stack: str = _STAGE.stack, **parameters: str) -> None:
    """Deploy a stack of the stage with these values of its parameters."""
    known = {name: {"Type": "String", "Default": value} for name, value in parameters.items()}
    body = {"Parameters": known, "Resources": {"One": _ONE}}
    planned = site.stacks.plan(stack, {"TemplateBody": json.dumps(body)}, {})
    assert planned
    site.stacks.carry_out(planned)


def test_stacks_have_the_tags_of_their_stage(site: Site) -> None:
    """A stage's stack has the tags for the allocation of costs; CloudFormation passes them on."""
    deployed(site)
    (stack,) = boto3.client("cloudformation").describe_stacks()["Stacks"]
    assert {tag["Key"]: tag["Value"] for tag in stack["Tags"]} == _STAGE.tags
    assert _STAGE.tags == {"project": "lakegate", "stage": "shop"}


@pytest.mark.parametrize(
    ("refuse", "name", "said"),
    [
        (refuse_another_key, "KmsKeyArn", "KEY_IN_USE: .* encrypted by old"),
        (refuse_another_lake, "LakeBucketName", "WOULD_LOSE_DATA: .* is in the bucket old"),
    ],
)
def test_a_stage_keeps_its_key_and_its_lake(
    site: Site, refuse: Callable[[Site, dict[str, str]], None], name: str, said: str
) -> None:
    """Another one, or none, is refused: what it encrypted, or its tables, would be out of reach."""
    refuse(site, {})
    deployed(site, **{name: "old"})
    refuse(site, {name: "old"})
    for other in ({}, {name: "new"}):
        with pytest.raises(LakegateError, match=said):
            refuse(site, other)


@pytest.mark.parametrize("made", [{}, {"DatabaseKeyArn": ""}, {"DatabaseKeyArn": "older"}])
def test_a_database_keeps_the_key_that_it_was_made_with(site: Site, made: dict[str, str]) -> None:
    """A new one gets the stage's; for another key RDS would make an empty database."""
    assert database_key(site, {"KmsKeyArn": "ours"}) == {"DatabaseKeyArn": "ours"}
    assert database_key(site, {}) == {"DatabaseKeyArn": ""}
    deployed(site, _STAGE.platform_stack, **made)
    kept = {"DatabaseKeyArn": made.get("DatabaseKeyArn", "")}
    assert database_key(site, {"KmsKeyArn": "ours"}) == kept
    with pytest.raises(LakegateError, match="out of the stage's file"):
        database_key(site, {"DatabaseKeyArn": "another"})


def test_a_stage_keeps_a_lake_of_its_own(site: Site) -> None:
    """Another bucket is refused at once: else the platform would be deployed with it first."""
    theirs = replace(site, stage=replace(_STAGE, lake="theirs"))
    deployed(theirs)
    refuse_another_lake(theirs, {})
    own = r"WOULD_LOSE_DATA: .* is in the bucket lakegate-shop-lake-\S+: .*\n.*Remove"
    with pytest.raises(LakegateError, match=own):
        refuse_another_lake(theirs, {"LakeBucketName": "theirs"})


def test_an_own_platform_is_asked_for_a_fact_that_a_release_adds(site: Site) -> None:
    """A platform of one's own stays one without the new fact, which is named with its command."""
    assert not has_own_platform(site)
    site.facts.put({fact: "known" for fact in PLATFORM if "shared" not in fact})
    assert has_own_platform(site)
    with pytest.raises(LakegateError, match=r"--name /lakegate/shop/emr-shared-application-id"):
        check_platform(site.facts, _STAGE)


def test_facts_are_looked_up_under_the_stage() -> None:
    """Facts are read from the stage's SSM parameters; each stack gets its own settings alone."""
    assert parameters(_TEMPLATE, _STAGE, {"SlackChannel": "#lake", "NessieTasks": "2"}) == {
        "Stage": "shop",
        "NessieUri": "/lakegate/shop/nessie-uri",
        "EmrApplicationId": "/lakegate/shop/emr-application-id",
        "SlackChannel": "#lake",
    }


def test_an_unknown_setting_is_refused() -> None:
    """A misspelled setting is an error that lists the known settings."""
    with pytest.raises(LakegateError, match=r"SlackChanel.*SlackChannel"):
        refuse_unknown({"SlackChanel": "#lake"}, [_ROOT / "template.yaml"])


_FILES = (_ROOT / "template.yaml", _ROOT / "infra" / "platform.yml")
_JAR = "s3://lakegate-jars-123456789012/libraries/iceberg-aws-bundle-1.10.0-{:03}.jar"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AlertTopicArn", "arn:aws:sns:eu-west-1:123456789012:a.fifo", "the ARN of a standard"),
        ("TableMetrics", "yes", "one of true, false"),
        ("MostBatchFiles", "29", "1 to 28, as a job run's arguments have no room"),
        ("JobTimeoutMinutes", "3", "a whole number, 5 at least and 1440 at most"),
        ("GraceSeconds", "2.5", "a whole number, 0 at least"),
        ("UploadConcurrency", "two", "a whole number, 2 at least and 1000 at most"),
        ("FunctionTimeout", "1200", "a whole number, 1 at least and 900 at most"),  # Lambda
        ("VisibilityTimeout", "86400", "a whole number, 0 at least and 43200 at most"),  # SQS
        ("KeepDays", "0", "a whole number, 1 at least"),  # S3's NoncurrentDays
        ("LogRetentionDays", "45", "one of 1, 3, 5, 7, 14, 30, 60"),  # CloudWatch Logs
        ("SweepSchedule", "rate(1 minutes)", "rate.1 minute. to rate.20 minutes."),  # EventBridge
        ("SweepSchedule", "rate(1 hour)", "rate.1 minute. to rate.20 minutes."),  # the alarm rings
        ("DigestSchedule", "cron(0 7 * * MON)", "as in rate"),
        ("AlarmEmail", "data-platform", "one e-mail address"),  # SNS
        ("AlarmEmail", "a@b.c, d@b.c", "one e-mail address"),
        ("BudgetEmail", "data-platform", "one e-mail address"),
        ("JobWorkerCores", "6", "one of 1, 2, 4, 8, 16"),  # EMR Serverless
        ("NessieCpu", "3000", "one of 512, "),
        ("JobWorkerMemory", "14 GB", r"of the form \[1-9\]\[0-9\]\*g"),
    ],
)
def test_a_value_that_aws_would_refuse_later_is_refused_at_once(
    name: str, value: str, said: str
) -> None:
    """The platform takes a quarter of an hour: before it each value is held against its rule."""
    found = re.escape(f"BAD_SETTING: {name} is '{value}': it must be ") + said
    with pytest.raises(LakegateError, match=found):
        refuse_unfit(_STAGE, {name: value}, *_FILES)


_TOGETHER = [
    ({"FunctionTimeout": "361"}, "VisibilityTimeout is '360': it must be 361 .FunctionTimeout."),
    ({"VisibilityTimeout": "59"}, "VisibilityTimeout is '59': it must be 60 .FunctionTimeout."),
    ({"JobWorkerMemory": "28g"}, "JobWorkerMemory is '28g': it must be 8 to 30 GB with a tenth"),
    ({"JobWorkerMemory": "6g"}, "JobWorkerMemory is '6g': it must be 8 to 30 GB with a tenth"),
    ({"JobWorkerCores": "1"}, "JobWorkerMemory is '14g': it must be 2 to 8 GB with a tenth"),
    ({"JobWorkerCores": "16"}, "JobWorkerMemory is '14g': it must be 32 to 120 GB with a tenth"),
]


@pytest.mark.parametrize(("chosen", "said"), _TOGETHER)
def test_settings_that_do_not_fit_each_other_are_refused(chosen: dict[str, str], said: str) -> None:
    """Lambda would refuse the queue, in the midst of a deployment, and EMR each large file."""
    with pytest.raises(LakegateError, match=f"BAD_SETTING: {said}"):
        refuse_unfit(_STAGE, chosen, *_FILES)


@pytest.mark.parametrize(
    ("cores", "least", "most"),
    [("1", "1g", "7g"), ("2", "3g", "14g"), ("4", "7g", "27g"), ("8", "14g", "54g")],
)
def test_the_memory_that_emr_gives_to_cores_fits(cores: str, least: str, most: str) -> None:
    """EMR rounds up to whole gigabytes, so what lies between its limits is a worker's size."""
    for memory in (least, most):
        refuse_unfit(_STAGE, {"JobWorkerCores": cores, "JobWorkerMemory": memory}, *_FILES)


def test_every_polled_queue_hides_messages_for_as_long_as_its_function_may_run() -> None:
    """So the check of the two settings is one of every queue."""
    every = template.read(_FILES[0])["Resources"]
    mappings = [r["Properties"] for r in every.values() if r["Type"].endswith("SourceMapping")]
    assert mappings
    for each in mappings:
        queue, function = each["EventSourceArn"]["Fn::GetAtt"], each["FunctionName"]["Fn::GetAtt"]
        hidden = every[queue[0]]["Properties"]["VisibilityTimeout"]
        timeout = every[function[0]]["Properties"]["Timeout"]
        assert (hidden, timeout) == ({"Ref": "VisibilityTimeout"}, {"Ref": "FunctionTimeout"})


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("SweepSchedule", "rate(1 minute)"),
        ("SweepSchedule", "rate(20 minutes)"),
        ("SweepSchedule", "cron(0/15 8-18 ? * MON-FRI *)"),
        ("DigestSchedule", "rate(12 hours)"),
        ("DigestSchedule", "rate(10 days)"),
        ("DigestSchedule", "cron(0 7 ? * MON *)"),
    ],
)
def test_schedules_of_eventbridge_fit(name: str, when: str) -> None:
    """The sweep's interval is shorter than the time after which an alarm misses it."""
    refuse_unfit(_STAGE, {name: when}, *_FILES)


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_what_stages_have_fits(stage: str) -> None:
    """The settings that the project has are accepted, and so is none."""
    for chosen in ({}, choices(_ROOT / "stages" / f"{stage}.yml")):
        refuse_unfit(_STAGE, chosen, *_FILES)


_KEY = "arn:aws:kms:{}:123456789012:key/1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AlertTopicArn", "arn:aws:sns:{}:123456789012:data-alerts"),
        ("KmsKeyArn", _KEY),
        ("ProducerKeyArns", f"{_KEY.format('eu-central-1')},{_KEY}"),
        ("CertificateArn", "arn:aws:acm:{}:123456789012:certificate/1"),
    ],
)
def test_what_a_stage_uses_is_in_its_region(name: str, value: str) -> None:
    """SNS, S3, DynamoDB and load balancers refuse what is in another region."""
    refuse_unfit(_STAGE, {name: value.format("eu-central-1")}, *_FILES)
    with pytest.raises(LakegateError, match=f"{name} is in eu-west-1, .* in eu-central-1"):
        refuse_unfit(_STAGE, {name: value.format("eu-west-1")}, *_FILES)


@pytest.mark.parametrize(
    ("bucket", "lake"),
    [
        (f"lakegate-shop-{kind}-123456789012-eu-central-1", {})
        for kind in ("lake", "landing", "code")
    ]
    + [("their-lake", {"LakeBucketName": "their-lake"})],
)
def test_no_bucket_of_the_stage_is_one_of_others(bucket: str, lake: dict[str, str]) -> None:
    """Each report and data file that the stage writes would come in as a file, with an alert."""
    chosen = {**lake, "LandingBucketArns": f"arn:aws:s3:::their-files,arn:aws:s3:::{bucket}"}
    with pytest.raises(LakegateError, match=f"LandingBucketArns has '{bucket}', .* take it out"):
        refuse_unfit(_STAGE, chosen, *_FILES)


def test_settings_that_lambda_does_not_take_are_refused() -> None:
    """Variables of more than 4 KB would end the update of the stack; the longest are named.

    A private authority of Nessie's certificate is one of them.
    """
    jars, buckets = ",".join(map(_JAR.format, range(12))), "arn:aws:s3:::their-files"
    chosen = {"JobJars": jars, "LandingBucketArns": buckets, "SlackChannel": "#lake"}
    refuse_unfit(_STAGE, {**chosen, "JobJars": jars[:1000]}, *_FILES)
    said = r"lakegate-shop-on-upload have 4,.* 4,096: shorten JobJars or LandingBucketArns"
    with pytest.raises(LakegateError, match=said):
        refuse_unfit(_STAGE, {**chosen, "JobJars": f"{jars},{jars}"[:1500]}, *_FILES)
    with pytest.raises(LakegateError, match="shorten JobJars"):
        refuse_unfit(_STAGE, {**chosen, "JobJars": jars[:1000]}, *_FILES, 500 * "A")
    with pytest.raises(LakegateError, match=r"on-snowflake .*: shorten SnowflakeTables$"):
        refuse_unfit(_STAGE, {"SnowflakeTables": "shop.orders," * 330}, *_FILES)


@pytest.mark.parametrize("name", ["", "9", "Dev", "a_b", "-a", "a-", "a--b", "a" * 19, "a/b"])
def test_a_stage_has_a_name_that_buckets_can_have(name: str) -> None:
    """A stage's name that AWS would refuse later is refused at once."""
    with pytest.raises(LakegateError, match="cannot be a stage's name"):
        checked_name(name)


@pytest.mark.parametrize("name", ["shop-platform", "shop-shared"])
def test_no_stage_has_the_name_of_a_part_of_another(name: str) -> None:
    """Deploying stage `shop-platform` would change the platform's stack of stage `shop`."""
    with pytest.raises(LakegateError, match="another stage may have parts of that name"):
        checked_name(name)


def test_names_follow_from_the_stage() -> None:
    """All names follow from stage, account and region."""
    assert checked_name("shop") == "shop"
    assert _STAGE.lake_bucket == "lakegate-shop-lake-123456789012-eu-central-1"
    assert _STAGE.platform_stack == "lakegate-shop-platform"


def test_a_stages_file_gives_its_settings(tmp_path: Path) -> None:
    """Numbers become text, as parameters are; without a file nothing is set."""
    file = tmp_path / "shop.yml"
    assert choices(file) == {}
    file.write_text("KeepDays: 60\nSlackChannel: '#lake'\n")

    assert choices(file) == {"KeepDays": "60", "SlackChannel": "#lake"}


def test_a_switch_needs_no_quotes(tmp_path: Path) -> None:
    """A template's switch is "true" or "false", whichever way YAML has it."""
    file = tmp_path / "shop.yml"
    file.write_text("TableMetrics: true\nFlowLogs: no\nDeletionProtection: 'true'\n")
    wanted = {"TableMetrics": "true", "FlowLogs": "false", "DeletionProtection": "true"}
    assert choices(file) == wanted


@pytest.mark.parametrize("line", ["SlackChannel: #lake", "AlarmEmail:", "AlarmEmail: ~"])
def test_a_setting_without_a_value_is_refused(tmp_path: Path, line: str) -> None:
    """It would be the text "None", and a # without quotes begins a comment."""
    file = tmp_path / "shop.yml"
    file.write_text(f"KeepDays: 60\n{line}\n")
    with pytest.raises(LakegateError, match=f"{line.partition(':')[0]} has no value"):
        choices(file)


@pytest.mark.parametrize("text", ["- a\n", "a: [", "just words"])
def test_a_stages_file_without_settings_is_refused(tmp_path: Path, text: str) -> None:
    """A file that does not map names to values is an error with the file's name."""
    file = tmp_path / "shop.yml"
    file.write_text(text)

    with pytest.raises(LakegateError, match=r"shop\.yml"):
        choices(file)


def test_a_production_stage_has_an_address_for_alarms() -> None:
    """A production stage without an address for its alarms is refused, and stages/prod.yml is."""
    prod = choices(_ROOT / "stages" / "prod.yml")
    refuse_unknown(prod, [_ROOT / "template.yaml", _ROOT / "infra" / "platform.yml"])

    with pytest.raises(LakegateError, match="AlarmEmail"):
        is_production(prod)
    assert is_production({**prod, "AlarmEmail": "team@example.com"})
    assert not is_production({"SlackChannel": "#lake"})
