"""An SNS topic, for people who want alerts as e-mail or in another tool."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.people.messages import Alert
from functions.people.plain_text import body, subject
from lakegate.errors import Transient


class Topic:
    """One topic of Amazon SNS."""

    def __init__(self, client: Any, arn: str) -> None:
        """`client` is boto3's `sns` client."""
        self._client = client
        self._arn = arn

    def post(self, alert: Alert) -> None:
        """Publish an alert as plain text. Raises Transient: the next try may find it mended."""
        try:
            self._client.publish(TopicArn=self._arn, Subject=subject(alert), Message=body(alert))
        except (ClientError, BotoCoreError) as error:
            raise Transient("TOPIC_UNAVAILABLE", f"SNS did not take an alert: {error}") from error
