"""What the local deployment is told: the template's parameters, and the secrets it names."""

from collections.abc import Mapping

from infra.local import ministack

STAGE = "local"
STACK = f"lakegate-{STAGE}"
LAKE_BUCKET = f"lakegate-{STAGE}-lake-{ministack.ACCOUNT}"
# Of its own, because ministack, like AWS, takes no events in AWS's name.
EVENT_SOURCE = "lakegate.emr-serverless"
APPLICATION = "00lakegate"
_SLACK_TOKEN = "xoxb-lakegate-local"  # noqa: S105  known to the stand-in only


def secrets(tokens: Mapping[str, str]) -> dict[str, str]:
    """Every secret's name and value; `tokens` maps Nessie's roles to their tokens."""
    return {_token_secret(role): token for role, token in tokens.items()} | {
        _slack_secret(): _SLACK_TOKEN
    }


def parameters(at: Mapping[str, str], job_release: str) -> dict[str, str]:
    """The template's parameters; `at` maps the parts to their addresses.

    Times are short, so that a person sees a retry happen: a message comes again after 10 seconds,
    on a slow machine even while its first delivery is still worked on, which must do no harm.
    """
    return {
        "Stage": STAGE,
        "NessieUri": at["nessie"],
        "UploaderTokenSecret": _token_secret("uploader"),
        "JobTokenSecret": _token_secret("job"),
        "PublisherTokenSecret": _token_secret("publisher"),
        "SlackTokenSecret": _slack_secret(),
        "SlackUrl": f"{at['slack']}/api/",
        "EmrApplicationId": APPLICATION,
        "EmrJobRoleArn": f"arn:aws:iam::{ministack.ACCOUNT}:role/lakegate-job",
        "EmrEndpoint": at["emr"],
        "EmrEventSource": EVENT_SOURCE,
        "JobRelease": job_release,
        "SweepSchedule": "rate(1 minute)",
        "GraceSeconds": "30",
        "FunctionTimeout": "20",
        "SweepTimeout": "60",
        "VisibilityTimeout": "10",
    }


def _token_secret(role: str) -> str:
    return f"lakegate/{STAGE}/nessie/{role}"


def _slack_secret() -> str:
    return f"lakegate/{STAGE}/slack"
