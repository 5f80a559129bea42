from pathlib import Path
from typing import Any

from infra import template

RESOURCES = template.read(Path(__file__).parents[3] / "template.yaml")["Resources"]


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
    alone = set(of("AWS::Serverless::Function")) - {"CheckupLambdaFunction"}
    assert watched("Errors") == alone
    assert watched("Invocations") == {"SweepLambdaFunction"}


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
