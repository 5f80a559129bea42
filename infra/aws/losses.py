"""What a change may not do: take away, or put another in the place of, what holds data."""

from collections.abc import Collection, Iterable

from infra.plans import Change
from lakegate.errors import LakegateError

# And what would be lost.
HOLDS = {
    "AWS::S3::Bucket": "its objects would stay behind, out of sight of everything that reads them",
    "AWS::DynamoDB::Table": "the new table would know none of the files that landed so far",
    "AWS::SQS::Queue": "the messages that wait in it would be lost",
    "AWS::RDS::DBInstance": "Nessie would find an empty database, and no table",
    "AWS::RDS::DBCluster": "Nessie would find an empty database, and no table",
    "AWS::SecretsManager::Secret": "what it holds would be gone",
    "AWS::KMS::Key": "what it encrypted could never be read again",
}
# What a warehouse waits for is of no use once it is not set up any more, and set up again it is
# brought along by each table's next publish. Without its threads Slack is told in new ones.
_GROWS_AGAIN = (
    "ThreadsTable",
    *("GlueQueue", "GlueDeadLetters"),
    *("SnowflakeQueue", "SnowflakeDeadLetters", "SnowflakeMarks"),
)


def loses(change: Change) -> str:
    """What the change would lose, "" where it loses nothing."""
    if change.resource in _GROWS_AGAIN and change.action == "Remove":
        return ""
    gone = change.action == "Remove" or change.replacement == "True"
    return HOLDS.get(change.type, "") if gone else ""


def refuse_losses(changes: Iterable[Change], *, but: Collection[str] = ()) -> None:
    """Raises LakegateError WOULD_LOSE_DATA: what each change would lose, and what to do.

    `but` are types of resources that may go.
    """
    lost = [(change, loses(change)) for change in changes if change.type not in but]
    lines = [f"    {_told(change)}: {reason}" for change, reason in lost if reason]
    if lines:
        advice = (
            "Nothing was changed. Put the resource back as it was deployed (its logical id, its"
            " name, its keys), or move the data first and take the resource out by hand."
        )
        message = "\n".join(["this would take away what holds data:", *lines, advice])
        raise LakegateError("WOULD_LOSE_DATA", message)


def _told(change: Change) -> str:
    if change.action == "Remove":
        return f"{change.resource} ({change.type}) would be removed"
    changed = f" for {', '.join(change.properties)}" if change.properties else ""
    return f"{change.resource} ({change.type}) would be replaced{changed}"
