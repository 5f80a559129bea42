from pathlib import Path
from typing import Any

from infra import template

RESOURCES = template.read(Path(__file__).parents[3] / "template.yaml")["Resources"]


def of(kind: str) -> dict[str, dict[str, Any]]:
    """The resources of a type, by their logical ids."""
    return {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == kind}


def watched(metric: str) -> set[str]:
    """The resources of which an alarm watches the metric."""
    alarms = [a for a in of("AWS::CloudWatch::Alarm").values() if a["MetricName"] == metric]
    values = [each["Value"] for alarm in alarms for each in alarm["Dimensions"]]
    return {value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0] for value in values}


def test_nothing_waits_unseen() -> None:
    """Of every queue people are told when a message waits too long, or was given up."""
    queues = set(of("AWS::SQS::Queue"))
    given_up = {
        p["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        for p in of("AWS::SQS::Queue").values()
        if "RedrivePolicy" in p
    }
    assert watched("ApproximateNumberOfMessagesVisible") == given_up
    assert watched("ApproximateAgeOfOldestMessage") == queues - given_up


def test_nothing_breaks_unseen() -> None:
    """Of every function that nobody calls by hand people are told when it breaks."""
    alone = set(of("AWS::Serverless::Function")) - {"CheckupLambdaFunction"}
    assert watched("Errors") == alone
    assert watched("Invocations") == {"SweepLambdaFunction"}


def test_alarms_reach_people() -> None:
    """Every alarm, and its end, goes to the topic that the e-mail address subscribes to."""
    for name, alarm in of("AWS::CloudWatch::Alarm").items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}], name


def test_an_outage_of_days_loses_no_alert() -> None:
    """An alert is tried for three days, kept for two weeks, and dead ones are told again.

    The queue, not the function, waits: nothing that publishes waits for Slack.
    """
    parameters = template.read(Path(__file__).parents[3] / "template.yaml")["Parameters"]
    queues, tries = of("AWS::SQS::Queue"), "maxReceiveCount"
    pause = parameters["VisibilityTimeout"]["Default"]
    assert queues["AlertQueue"]["RedrivePolicy"][tries] * pause >= 3 * 86_400
    for name in ("AlertQueue", "AlertDeadLetters"):
        assert queues[name]["MessageRetentionPeriod"] == 14 * 86_400
    assert pause >= 6 * parameters["FunctionTimeout"]["Default"]
