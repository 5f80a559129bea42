"""The user's settings of AWS on this machine: region, profile, credentials."""

from typing import TYPE_CHECKING

from lakegate.errors import LakegateError

if TYPE_CHECKING:  # a second to import, which help does not need
    import boto3


def aws_session() -> "boto3.Session":
    """Return boto3's session by the user's settings. Raises LakegateError BAD_AWS_SETTINGS."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.Session()
    except BotoCoreError as error:
        message = f"AWS's settings of this machine cannot be used: {error}"
        remedy = "Correct the variable AWS_PROFILE, or the files in ~/.aws."
        raise LakegateError("BAD_AWS_SETTINGS", f"{message}\n{remedy}") from error
