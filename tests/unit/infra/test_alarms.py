import json
from pathlib import Path
from typing import Any

from functions.settings import Settings
from infra import template
from lakegate.nessie_tokens import LIFE

_ROOT = Path(__file__).parents[3]
_ALARM = "AWS::CloudWatch::Alarm"
RESOURCES = template.read(_ROOT / "template.yaml")["Resources"]
PLATFORM = template.read(_ROOT / "infra" / "platform.yml")["Resources"]


def of(kind: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a type by their logical ids."""
    return {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == kind}


def watched(metric: str) -> set[str]:
    """Return the resources whose metric an alarm watches."""
    alarms = [a for a in of("AWS::CloudWatch::Alarm").values() if a["MetricName"] == metric]
    values = [each["Value"] for alarm in alarms for each in alarm["Dimensions"]]
    return {value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0] for value in values}


def test_every_queue_has_alarms() -> None:
    """Every queue has alarms for a message that waits too long and for dead letters."""
    queues = set(of("AWS::SQS::Queue"))
    given_up = {
        p["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        for p in of("AWS::SQS::Queue").values()
        if "RedrivePolicy" in p
    }
    assert watched("ApproximateNumberOfMessagesVisible") == given_up
    assert watched("ApproximateAgeOfOldestMessage") == queues - given_up


def test_every_function_has_an_alarm() -> None:
    """Every function that is not invoked by hand has an alarm for its errors."""
    by_hand = {"CheckupLambdaFunction", "OnNessieRequestLambdaFunction"}
    assert watched("Errors") == set(of("AWS::Serverless::Function")) - by_hand
    assert watched("Invocations") == {"SweepLambdaFunction"}


def test_the_end_of_tokens_has_an_alarm() -> None:
    """The alarm watches the rotation's metric, and also tells that the metric has stopped."""
    alarm = of("AWS::CloudWatch::Alarm")["TokensEndAlarm"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("Lakegate", "TokenDaysLeft")
    names = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
    assert names == {"service": "lakegate", "stage": {"Ref": "Stage"}}
    assert alarm["InsufficientDataActions"] == [{"Ref": "AlarmTopic"}]
    parameters = template.read(Path(__file__).parents[3] / "template.yaml")["Parameters"]
    renewed_with = LIFE.days // 3
    assert 0 < parameters["TokenAlarmDays"]["Default"] < renewed_with


def test_shared_runs_that_die_again_and_again_raise_an_alarm() -> None:
    """The alarm watches the functions' metric, and takes more deaths than one file causes."""
    alarm = of("AWS::CloudWatch::Alarm")["SharedRunsFailAlarm"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("Lakegate", "SharedRunsFailed")
    names = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
    assert names == {"service": "lakegate", "stage": {"Ref": "Stage"}}
    assert alarm["DatapointsToAlarm"] > Settings.max_crashes
    assert alarm["TreatMissingData"] == "notBreaching"


def test_alarms_reach_the_owners() -> None:
    """Every alarm and its end go to the topic that the e-mail address subscribes to."""
    for name, alarm in of("AWS::CloudWatch::Alarm").items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}], name


def test_an_outage_of_days_loses_no_alert() -> None:
    """An alert is retried for three days and kept for two weeks, and dead letters raise an alarm.

    The queue waits, not the function: publishing never waits for Slack.
    """
    parameters = template.read(Path(__file__).parents[3] / "template.yaml")["Parameters"]
    queues, tries = of("AWS::SQS::Queue"), "maxReceiveCount"
    pause = parameters["VisibilityTimeout"]["Default"]
    assert queues["AlertQueue"]["RedrivePolicy"][tries] * pause >= 3 * 86_400
    for name in ("AlertQueue", "AlertDeadLetters"):
        assert queues[name]["MessageRetentionPeriod"] == 14 * 86_400
    assert pause >= 6 * parameters["FunctionTimeout"]["Default"]


def test_the_platforms_alarms_reach_the_owners() -> None:
    """Every alarm of the platform and its end go to the topic of the e-mail address."""
    alarms = {n: r["Properties"] for n, r in PLATFORM.items() if r["Type"] == _ALARM}
    for name, alarm in alarms.items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "PlatformAlarmTopic"}], name
    watched = {(alarm["Namespace"], alarm["MetricName"]) for alarm in alarms.values()}
    assert watched >= {
        ("AWS/NetworkELB", "UnHealthyHostCount"),
        ("AWS/ECS", "CPUUtilization"),
        ("AWS/RDS", "CPUUtilization"),
        ("AWS/RDS", "FreeStorageSpace"),
        ("AWS/EMRServerless", "FailedJobs"),
        ("AWS/EMRServerless", "QueuedJobs"),
    }


def test_refused_requests_of_the_ledger_raise_an_alarm() -> None:
    """Reads and writes of the ledger that DynamoDB throttles raise an alarm."""
    assert watched("ReadThrottleEvents") == watched("WriteThrottleEvents") == {"LedgerTable"}


def test_the_dashboard_shows_what_exists() -> None:
    """The dashboard is JSON, and each queue, function and table that it names is deployed."""
    text = PLATFORM["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    rows = [row for each in json.loads(text)["widgets"] for row in each["properties"]["metrics"]]
    named = {"QueueName", "FunctionName", "TableName"}
    shown = {row[3] for row in rows if row[2] in named}
    deployed = {
        properties[by]["Fn::Sub"]
        for each in RESOURCES.values()
        for by in named
        if by in (properties := each.get("Properties", {})) and "Fn::Sub" in properties[by]
    }
    assert shown
    assert shown <= deployed
