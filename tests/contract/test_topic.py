"""Alerts are posted as plain text to the SNS topic."""

import json
import uuid
from dataclasses import replace

import boto3
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from functions.model.messages.alert import Alert
from functions.notifications.alert_text import alert, recovered, unreadable_event, without_buttons
from functions.notifications.email import Topic, body, subject
from tests.contract.aws import ACCOUNT
from tests.fakes.examples import FAILED, INGESTION, REPORT

ALERT = without_buttons(
    alert(
        replace(INGESTION, terms=replace(INGESTION.terms, owner="Shop & Co")),
        REPORT,
        "https://page",
    )
)


def test_people_read_it_without_marks() -> None:
    """Title, facts, check, rows, commands and page address appear without Slack's markup."""
    text = body(ALERT)
    for part in (
        "shop.orders: a.csv rejected, 1 of 2 checks failed: carrier; main unchanged",
        "Drop a corrected file, or correct the contract and replay this one.",
        "Reason CHECKS_FAILED",
        "Table shop.orders\nOwner Shop & Co\nBranch ingest/shop.orders/a-csv-aaaaaaaaaaaa",
        "✗ carrier on carrier, flight: 2 rows: two characters",
        "carrier Zürich, flight (empty)",
        f"On the quality page: https://page/ingestion?id={INGESTION.id}",
        f"lakegate inspect {INGESTION.id} shows the rows",
        f"lakegate show {INGESTION.id}\nlakegate publish {INGESTION.id} --by NAME --reason TEXT\n",
    ):
        assert part in text
    assert not {"*", "`", "<"} & set(text)
    assert subject(ALERT).startswith("shop.orders: a.csv rejected, 1 of 2 checks failed: carrier")


def test_a_formula_keeps_its_stars() -> None:
    """A star in the words of a check is no mark: `a * b` and `COUNT(*)` stay what they are."""
    formula = "total <> price*pieces*1.2, or COUNT(*) - SUM(a * b * c) is 3"
    report = replace(REPORT, checks=(replace(FAILED, found=formula),))
    assert formula in body(alert(INGESTION, report))


def test_a_title_names_the_file_as_it_is_called() -> None:
    """Entities and marks in a file's name stay what they are, and so begin no line of their own."""
    name = "a&NewLine;&#x202e;*b*<c|d>.csv"
    landed = replace(INGESTION.landed, key=f"shop/{name}")
    text = body(alert(replace(INGESTION, landed=landed), REPORT))
    assert text.startswith(f"shop.orders: {name} rejected, ")
    assert "\u202e" not in text


@given(st.text(max_size=3000), st.text(max_size=3000))
def test_any_alert_is_one_that_sns_takes(name: str, found: str) -> None:
    """Any alert gives a subject of under 100 printable ASCII characters and at most 256 KB."""
    landed = replace(INGESTION.landed, key=f"shop/{name}")
    ingestion = replace(INGESTION, landed=landed)
    check = replace(FAILED, found=found, samples=({found: name},))
    for notice in (
        alert(ingestion, replace(REPORT, checks=(check,) * 20)),
        recovered(ingestion),
        unreadable_event("queue", name, found),
        Alert(name, ()),
    ):
        line = subject(notice)
        assert 0 < len(line) < 100
        assert line.isascii()
        assert line.isprintable()
        assert line[0] > " "
        assert 0 < len(body(notice).encode()) <= 256 * 1024


def test_the_longest_text_is_cut_between_characters() -> None:
    """A longer text is cut between characters."""
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "x" + "\U0001f600" * 3000}}
    text = body(Alert("t", (block,) * 50))
    assert 256 * 1024 - 4 <= len(text.encode()) <= 256 * 1024


def test_a_topic_gets_subject_and_text() -> None:
    """The topic's subscribers get subject and text."""
    with mock_aws():
        sns, sqs = (boto3.client(name, **ACCOUNT) for name in ("sns", "sqs"))
        url = sqs.create_queue(QueueName=f"subscriber-{uuid.uuid4().hex}")["QueueUrl"]
        wanted = ["QueueArn"]
        queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
        arn = sns.create_topic(Name="alerts")["TopicArn"]
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue["QueueArn"])
        Topic(sns, arn).post(ALERT)
        (got,) = sqs.receive_message(QueueUrl=url)["Messages"]
    message = json.loads(got["Body"])
    assert (message["Subject"], message["Message"]) == (subject(ALERT), body(ALERT))
