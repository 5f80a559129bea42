"""Alarms watch documented metrics, reach the owners, and are neither red nor silent for ever."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.settings import Settings
from infra import template
from infra.aws.certificates import nessie
from lakegate.nessie_tokens import LIFE

_ROOT = Path(__file__).parents[3]
_ALARM = "AWS::CloudWatch::Alarm"
RESOURCES = template.read(_ROOT / "template.yaml")["Resources"]
PLATFORM = template.read(_ROOT / "infra" / "platform.yml")["Resources"]
# What alarms and the dashboard may watch: each service's metrics, with the dimensions by which its
# user guide says that they come ("CloudWatch metrics"), or by which the functions put them.
_TARGETS = {"HealthyHostCount", "UnHealthyHostCount"}
_DOCUMENTED = (
    ("AWS/ApplicationELB", _TARGETS, {"LoadBalancer", "TargetGroup"}),
    ("AWS/CertificateManager", {"DaysToExpiry"}, {"CertificateArn"}),
    ("AWS/ECS", {"CPUUtilization", "MemoryUtilization"}, {"ClusterName", "ServiceName"}),
    ("AWS/RDS", {"CPUUtilization", "FreeStorageSpace"}, {"DBInstanceIdentifier"}),
    (
        # None is of runs that are QUEUED. Those of workers come by type and capacity as well.
        "AWS/EMRServerless",
        {f"{state}Jobs" for state in ("Pending", "Scheduled", "Running", "Failed", "Success")}
        | {"RunningWorkerCount", "PendingCreationWorkerCount"},
        {"ApplicationId", "ApplicationName"},
    ),
    (
        "AWS/SQS",
        {
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesVisible",
            "ApproximateNumberOfMessagesNotVisible",
        },
        {"QueueName"},
    ),
    ("AWS/Lambda", {"Duration", "Errors", "Invocations", "Throttles"}, {"FunctionName"}),
    ("AWS/DynamoDB", {"ReadThrottleEvents", "WriteThrottleEvents"}, {"TableName"}),
    ("Lakegate", {"SharedRunsFailed", "TokenDaysLeft"}, {"service", "stage"}),
)
METRICS = {(space, name): by for space, names, by in _DOCUMENTED for name in names}
# Without a database there is no healthy Nessie, which has an alarm of its own.
_TOLD_BY_OTHERS = {"DatabaseStorageAlarm"}


_QUERY = re.compile(r"SELECT SUM\((\w+)\) FROM \"(\S+)\" WHERE TableName = '\$\{(\w+)\}'")


def plain(alarm: dict[str, Any]) -> dict[str, Any]:
    """Return an alarm with a query as one with the metric of all that the query selects."""
    if "Metrics" not in alarm:
        return alarm
    (asked,) = alarm["Metrics"]
    found = _QUERY.fullmatch(asked["Expression"]["Fn::Sub"])
    assert found
    by = [{"Name": "TableName", "Value": {"Ref": found[3]}}]
    told = {"MetricName": found[1], "Namespace": found[2], "Period": asked["Period"]}
    return {**alarm, **told, "Dimensions": by}


ALARMS = {
    name: plain(each["Properties"])
    for name, each in {**RESOURCES, **PLATFORM}.items()
    if each["Type"] == _ALARM
}


def of(kind: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a type by their logical ids."""
    return {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == kind}


def watched(metric: str) -> set[str]:
    """Return the resources whose metric an alarm watches."""
    alarms = [plain(a) for a in of(_ALARM).values()]
    alarms = [each for each in alarms if each["MetricName"] == metric]
    values = [each["Value"] for alarm in alarms for each in alarm["Dimensions"]]
    return {value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0] for value in values}


def namespaces(alarm: dict[str, Any]) -> list[str]:
    """Return the namespaces that an alarm's metric can have, by the stack's parameters."""
    told = alarm["Namespace"]
    return [told] if isinstance(told, str) else told["Fn::If"][1:]


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_watches_a_documented_metric(name: str) -> None:
    """The service documents the metric with exactly these dimensions; else no data ever comes."""
    alarm = ALARMS[name]
    dimensions = {each["Name"] for each in alarm["Dimensions"]}
    for space in namespaces(alarm):
        assert METRICS.get((space, alarm["MetricName"])) == dimensions, space


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_is_neither_red_nor_silent_for_ever(name: str) -> None:
    """Missing data is well where much is bad, and bad where little is: then nothing is there."""
    alarm = ALARMS[name]
    missing = alarm["TreatMissingData"]
    if alarm["ComparisonOperator"].startswith("Greater"):
        assert missing == "notBreaching"
    else:
        is_told = missing == "missing" and "InsufficientDataActions" in alarm
        assert missing == "breaching" or is_told or name in _TOLD_BY_OTHERS


def runbook() -> dict[str, list[str]]:
    """Return the lines of each entry of docs/alarms.md by its heading, which is its anchor, too."""
    text = (_ROOT / "docs" / "alarms.md").read_text()
    parts = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
    entries = (part.strip().splitlines() for part in parts)
    return {lines[0]: lines[2:] for lines in entries if re.fullmatch("[a-z-]+", lines[0])}


def test_every_alarm_has_its_entry_in_the_runbook_and_every_entry_its_alarm() -> None:
    """The page tells each alarm once, and none that does not exist."""
    names = [alarm["AlarmName"]["Fn::Sub"] for alarm in ALARMS.values()]
    assert sorted(name.removeprefix("lakegate-${Stage}-") for name in names) == sorted(runbook())


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_leads_to_its_entry(name: str) -> None:
    """Its text names the anchor, and the entry has the meaning, the first command, the remedy."""
    alarm = ALARMS[name]
    entry = alarm["AlarmName"]["Fn::Sub"].removeprefix("lakegate-${Stage}-")
    text = alarm["AlarmDescription"]
    said = text if isinstance(text, str) else text["Fn::Sub"]
    assert re.findall(r"docs/alarms\.md#([\w-]+)", said) == [entry]
    meaning, first, remedy = runbook()[entry]
    assert re.fullmatch(r"\* First: `(aws|lakegate) .+`", first)
    assert all(line.startswith("* ") and len(line) <= 120 for line in (meaning, first, remedy))


@pytest.mark.parametrize("name", ALARMS)
def test_an_entry_asks_what_is_deployed(name: str) -> None:
    """The log groups and functions of a first command have names of this stage's resources."""
    entry = ALARMS[name]["AlarmName"]["Fn::Sub"].removeprefix("lakegate-${Stage}-")
    asked = re.findall(r"(?:tail|--function-name) (\S+)", runbook()[entry][1])
    by = {"AWS::Logs::LogGroup": "LogGroupName", "AWS::Serverless::Function": "FunctionName"}
    every = [each for each in (*RESOURCES.values(), *PLATFORM.values()) if each["Type"] in by]
    named = [each["Properties"][by[each["Type"]]]["Fn::Sub"] for each in every]
    assert set(asked) <= {each.replace("${Stage}", "S") for each in named}


@pytest.mark.parametrize("name", ALARMS)
def test_cloudwatch_accepts_an_alarms_times(name: str) -> None:
    """An alarm looks back a day at most, by whole minutes, at no more points than it has."""
    alarm = ALARMS[name]
    assert alarm["Period"] % 60 == 0
    assert alarm["Period"] * alarm["EvaluationPeriods"] <= 86_400
    assert alarm.get("DatapointsToAlarm", 1) <= alarm["EvaluationPeriods"]


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


def test_the_end_of_nessies_certificate_has_an_alarm() -> None:
    """ACM counts the days of the listener's certificate, and a deployment then makes another."""
    alarm = PLATFORM["NessieCertificateAlarm"]["Properties"]
    (used,) = PLATFORM["NessieListener"]["Properties"]["Certificates"]
    assert [each["Value"] for each in alarm["Dimensions"]] == [used["CertificateArn"]]
    assert timedelta(days=alarm["Threshold"]) < nessie.RENEWED_WITH_LEFT


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
    watched = {
        (space, alarm["MetricName"]) for alarm in alarms.values() for space in namespaces(alarm)
    }
    assert watched >= {
        key for key in METRICS if key[0] in ("AWS/ECS", "AWS/RDS", "AWS/ApplicationELB")
    }
    assert watched >= {("AWS/EMRServerless", f"{state}Jobs") for state in ("Failed", "Running")}


def test_refused_requests_of_the_ledger_raise_an_alarm() -> None:
    """Reads and writes of the ledger that DynamoDB throttles raise an alarm.

    A query takes also what is counted by index: the metrics of a table's name alone do not have it
    (DynamoDB, "Metrics and dimensions").
    """
    assert watched("ReadThrottleEvents") == watched("WriteThrottleEvents") == {"LedgerTable"}
    throttles = [each for each in of(_ALARM).values() if "Metrics" in each]
    assert len(throttles) == 2


def test_the_dashboard_shows_what_exists() -> None:
    """The dashboard is JSON, its metrics are documented, and what it names is deployed."""
    body = json.loads(PLATFORM["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"])
    rows = [row for each in body["widgets"] for row in each["properties"]["metrics"]]
    for space, metric, *rest in rows:
        names = {each for each in rest[::2] if isinstance(each, str)}
        assert METRICS.get((space, metric)) == names, metric
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
