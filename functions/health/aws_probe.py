"""Read the configuration of the deployment's AWS resources; change nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.health.model import Application, Bucket, Keys, Notification, Queue, Table
from lakegate.errors import Transient

_NOT_SET = (
    "NoSuchBucketPolicy",
    "NoSuchPublicAccessBlockConfiguration",
    "ServerSideEncryptionConfigurationNotFoundError",
)


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

    def bucket(self, name: str) -> Bucket:
        """Return a bucket's settings."""
        with _translated(name):
            rules = self._asked("get_bucket_encryption", name, "ServerSideEncryptionConfiguration")
            blocked = self._asked("get_public_access_block", name, "PublicAccessBlockConfiguration")
            default = (rules or {}).get("Rules", [{}])[0]
            return Bucket(
                name,
                versioning=self._asked("get_bucket_versioning", name, "Status") or "",
                encryption=default.get("ApplyServerSideEncryptionByDefault", {}).get(
                    "SSEAlgorithm", ""
                ),
                policy=self._policy(name),
                is_private=bool(blocked) and all(blocked.values()),
            )

    def notifications(self, bucket: str) -> list[Notification]:
        """Return the queues that a bucket notifies of landed objects."""
        with _translated(bucket):
            found = self._s3.get_bucket_notification_configuration(Bucket=bucket)
        return [
            Notification(each["QueueArn"], frozenset(each["Events"]), bool(each.get("Filter")))
            for each in found.get("QueueConfigurations", [])
        ]

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

    def table(self, name: str) -> Table:
        """Return the keys of a DynamoDB table and of its indexes."""
        with _translated(name):
            found = self._dynamodb.describe_table(TableName=name)["Table"]
        indexes = found.get("GlobalSecondaryIndexes", [])
        return Table(
            _keys(found, "TableStatus"),
            {each["IndexName"]: _keys(each, "IndexStatus") for each in indexes},
        )

    def queue(self, url: str) -> Queue:
        """Return how many messages a queue has, and its dead-letter queue."""
        with _translated(url):
            asked = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        found = asked["Attributes"]
        redrive = json.loads(found.get("RedrivePolicy", "{}"))
        return Queue(
            name=url.rsplit("/", 1)[-1],
            arn=found["QueueArn"],
            waiting=int(found["ApproximateNumberOfMessages"]),
            in_flight=int(found["ApproximateNumberOfMessagesNotVisible"]),
            dead_letters_arn=redrive.get("deadLetterTargetArn", ""),
        )

    def application(self, id_: str) -> Application:
        """Return an EMR Serverless application."""
        with _translated(id_):
            found = self._emr.get_application(applicationId=id_)["application"]
        return Application(
            id=id_,
            state=found["state"],
            release_label=found["releaseLabel"],
            auto_start=found.get("autoStartConfiguration", {}).get("enabled", True),
        )

    def _policy(self, bucket: str) -> str:
        return self._asked("get_bucket_policy", bucket, "Policy") or ""

    def _asked(self, operation: str, bucket: str, name: str) -> Any:
        """Return one of a bucket's settings; None where it was never set."""
        try:
            return getattr(self._s3, operation)(Bucket=bucket).get(name)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_SET:
                return None
            raise


def _keys(found: dict[str, Any], status: str) -> Keys:
    order = sorted(found["KeySchema"], key=lambda each: each["KeyType"] != "HASH")
    return Keys(
        tuple(each["AttributeName"] for each in order), found.get(status, "ACTIVE") == "ACTIVE"
    )


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise Transient("AWS_REFUSED", f"{what}: {error}") from error
    except (KeyError, ValueError) as error:
        raise Transient("AWS_UNCLEAR", f"{what}: the answer lacks {error}") from error
