"""What the local deployment is told: parameters, SSM's and the template's, and secrets."""

import json
from collections.abc import Mapping

from infra.local import ministack
from infra.local.slack_people import TEAM, App, user_id
from infra.stage import Stage

STAGE = "local"
_HERE = Stage(STAGE, ministack.ACCOUNT, ministack.REGION)
STACK = _HERE.stack
LAKE_BUCKET = _HERE.lake_bucket
# Of its own, because ministack, like AWS, takes no events in AWS's name.
EVENT_SOURCE = "lakegate.emr-serverless"
APPLICATION = "00lakegate"
GLUE_PREFIX = "lakegate_"
# Known to the stand-in only.
_SLACK_TOKEN = "xoxb-lakegate-local"  # noqa: S105
_SIGNING_SECRET = "lakegate-local-signing-secret"  # noqa: S105
_USERS = ("ada",)


def secrets(tokens: Mapping[str, str]) -> dict[str, str]:
    """Every secret's name and value; `tokens` maps Nessie's roles to their tokens."""
    return {_HERE.token_secret(role): token for role, token in tokens.items()} | {
        _slack_secret(): json.dumps({"token": _SLACK_TOKEN, "signing_secret": _SIGNING_SECRET})
    }


def facts(at: Mapping[str, str]) -> dict[str, str]:
    """What a platform tells through SSM; `at` maps the parts to their addresses.

    The network is a name only: the functions are processes.
    """
    return {
        "nessie-uri": at["nessie"],
        "emr-application-id": APPLICATION,
        "subnet-a": "subnet-0000000a",
        "subnet-b": "subnet-0000000b",
        "function-security-group": "sg-00000000",
    }


def parameters(at: Mapping[str, str]) -> dict[str, str]:
    """The template's parameters; `at` maps the parts to their addresses.

    Times are short, so that a person sees a retry happen: a message comes again after 10 seconds,
    on a slow machine even while its first delivery is still worked on, which must do no harm. How
    long a function may take is the template's own: a slow machine must get to the end of it.
    """
    return {
        "SlackTokenSecret": _slack_secret(),
        "SlackUsers": ", ".join(map(user_id, _USERS)),
        "SlackTeam": TEAM,
        "SlackUrl": f"{at['slack']}/api/",
        "EmrEndpoint": at["emr"],
        "EmrEventSource": EVENT_SOURCE,
        "GlueDatabasePrefix": GLUE_PREFIX,
        "SweepSchedule": "rate(1 minute)",
        "GraceSeconds": "30",
        "VisibilityTimeout": "10",
    }


def _slack_secret() -> str:
    return f"lakegate/{STAGE}/slack"


def slack_app(endpoint: str, action_url: str) -> App:
    """Where Slack's app hears of a pressed button: what ministack at `endpoint` takes it by."""
    function = action_url.removeprefix("https://").partition(".")[0]
    address = f"{endpoint}/_aws/lambda-url/{function}/"
    return App(address, _SIGNING_SECRET)
