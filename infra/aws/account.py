"""Whose credentials these are, and where they lead."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError


def stage_here(name: str, session: Any, tell: Callable[[str], None]) -> Stage:
    """The stage `name` in the account and region that boto3's `session` leads to; both are told.

    Raises LakegateError BAD_STAGE, NO_REGION or NO_CREDENTIALS.
    """
    checked_name(name)
    if not session.region_name:
        message = "no AWS region is set: set AWS_DEFAULT_REGION, or `region` in ~/.aws/config"
        raise LakegateError("NO_REGION", message)
    try:
        caller = session.client("sts").get_caller_identity()
    except (ClientError, BotoCoreError) as error:
        message = f"AWS does not know you: {error}; try `aws sts get-caller-identity`"
        raise LakegateError("NO_CREDENTIALS", message) from error
    stage = Stage(name, caller["Account"], session.region_name)
    where = f"account {stage.account}, region {stage.region}"
    tell(f"stage {name} in {where}, as {caller['Arn']}")
    return stage
