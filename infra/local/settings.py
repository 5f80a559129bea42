"""The local deployment's settings: SSM's parameters, the template's, and secrets."""

import json
from collections.abc import Mapping

from infra.local import ministack
from infra.local.slack.people import TEAM, TOKEN, App, user_id
from infra.stage import Stage
from lakegate.trust import PUBLIC

STAGE = "local"
_HERE = Stage(STAGE, ministack.ACCOUNT, ministack.REGION)
LAKE_BUCKET = _HERE.lake_bucket
# Not aws.emr-serverless: ministack, like AWS, takes no events with a source of AWS's.
EVENT_SOURCE = "lakegate.emr-serverless"
APPLICATION, SHARED_APPLICATION = "00lakegate", "00lakegateshared"
GLUE_PREFIX = "lakegate_"
_SIGNING_SECRET = "lakegate-local-signing-secret"  # noqa: S105
_SLACK_SECRET = f"lakegate/{STAGE}/slack"
_USERS = ("ada",)


def secrets(tokens: Mapping[str, str]) -> dict[str, str]:
    """Return every secret's name and value; `tokens` maps Nessie's roles to their tokens."""
    return {_HERE.token_secret(role): token for role, token in tokens.items()} | {
        _SLACK_SECRET: json.dumps({"token": TOKEN, "signing_secret": _SIGNING_SECRET})
    }


def facts(at: Mapping[str, str]) -> dict[str, str]:
    """Return the platform's facts in SSM; `at` maps the parts to their addresses.

    The network is only a name: the functions are processes.
    """
    return {
        "nessie-uri": at["nessie"],
        "nessie-ca": PUBLIC,
        "emr-application-id": APPLICATION,
        "emr-shared-application-id": SHARED_APPLICATION,
        "subnet-a": "subnet-0000000a",
        "subnet-b": "subnet-0000000b",
        "function-security-group": "sg-00000000",
    }


def parameters(at: Mapping[str, str]) -> dict[str, str]:
    """Return the template's parameters; `at` maps the parts to their addresses.

    Times are short so that retries can be watched: a message is delivered again after 10 seconds,
    on a slow machine even during its first delivery, which must do no harm. The functions'
    time-out is the template's: they must end on a slow machine, too. A shared run stays up for ten
    minutes without a file, since it costs nothing here, and the next file need not wait for one.
    """
    return {
        "SlackTokenSecret": _SLACK_SECRET,
        "SlackUsers": ", ".join(map(user_id, _USERS)),
        "SlackTeam": TEAM,
        "SlackUrl": f"{at['slack']}/api/",
        "EmrEndpoint": at["emr"],
        "EmrEventSource": EVENT_SOURCE,
        "GlueDatabasePrefix": GLUE_PREFIX,
        "TrustedPrincipal": f"arn:aws:iam::{ministack.ACCOUNT}:root",
        "SweepSchedule": "rate(1 minute)",
        "GraceSeconds": "30",
        "VisibilityTimeout": "10",
        "SharedRuns": "1",
        "RunIdleSeconds": "600",
    }


def slack_app(endpoint: str, action_url: str) -> App:
    """Return the local Slack's app: ministack at `endpoint` takes its pressed buttons."""
    function = action_url.removeprefix("https://").partition(".")[0]
    address = f"{endpoint}/_aws/lambda-url/{function}/"
    return App(address, _SIGNING_SECRET)
