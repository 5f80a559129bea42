"""Read the state of the deployment's AWS resources; change nothing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.health.model import Application, Notification, Queue
from lakegate.errors import Transient


class AwsProbe:
    """The resources of an account and a region, as one role sees them."""

    def __init__(self, s3: Any, sqs: Any, dynamodb: Any, emr: Any) -> None:
        """Use boto3's clients."""
        self._s3 = s3
        self._sqs = sqs
        self._dynamodb = dynamodb
        self._emr = emr

    def date(self, bucket: str) -> datetime:
        """Return the time by S3's clock, in whole seconds."""
        with _translated(bucket):
            answer = self._s3.head_bucket(Bucket=bucket)
            return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])

    def notifications(self, bucket: str) -> list[Notification]:
        """Return the queues that a bucket notifies of landed objects."""
        with _translated(bucket):
            answer = self._s3.get_bucket_notification_configuration(Bucket=bucket)
        return [
            Notification(each["QueueArn"], frozenset(each["Events"]), bool(each.get("Filter")))
            for each in answer.get("QueueConfigurations", [])
        ]

    def tells_event_bridge(self, bucket: str) -> bool:
        """Return whether a bucket tells EventBridge of its objects."""
        with _translated(bucket):
            answer = self._s3.get_bucket_notification_configuration(Bucket=bucket)
        return "EventBridgeConfiguration" in answer

    def has_object(self, bucket: str, key: str) -> bool:
        """Return whether the object can be read."""
        with _translated(f"s3://{bucket}/{key}"):
            try:
                self._s3.head_object(Bucket=bucket, Key=key)
            except ClientError as error:
                if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                    return False
                raise
        return True

    def table(self, name: str) -> str:
        """Return the status of a DynamoDB table."""
        with _translated(name):
            return str(self._dynamodb.describe_table(TableName=name)["Table"]["TableStatus"])

    def queue(self, url: str) -> Queue:
        """Return how many messages a queue has."""
        with _translated(url):
            asked = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        attributes = asked["Attributes"]
        return Queue(
            name=url.rsplit("/", 1)[-1],
            arn=attributes["QueueArn"],
            waiting=int(attributes["ApproximateNumberOfMessages"]),
            in_flight=int(attributes["ApproximateNumberOfMessagesNotVisible"]),
        )

    def application(self, id_: str) -> Application:
        """Return an EMR Serverless application."""
        with _translated(id_):
            application = self._emr.get_application(applicationId=id_)["application"]
        return Application(
            id=id_,
            state=application["state"],
            release_label=application["releaseLabel"],
            auto_start=application.get("autoStartConfiguration", {}).get("enabled", True),
            most_cpus=_cpus(application.get("maximumCapacity", {}).get("cpu", "")),
        )


def _cpus(amount: str) -> int | None:
    """Return the number in an amount such as `64 vCPU`."""
    return int(re.findall(r"\d+", amount)[0]) if amount else None


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise Transient("AWS_REFUSED", f"{what}: {error}") from error
    except (KeyError, ValueError) as error:
        raise Transient("AWS_UNCLEAR", f"{what}: the answer lacks {error}") from error
