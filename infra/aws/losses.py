"""Refuse a deployment that removes or replaces resources that hold data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from infra.aws.site import Site
from infra.cloudformation import Change
from lakegate.errors import LakegateError

KEY, LAKE, DATABASE_KEY = "KmsKeyArn", "LakeBucketName", "DatabaseKeyArn"
# Each type with the reason.
HOLDS = {
    "AWS::S3::Bucket": "its objects would stay behind, and everything would read the new bucket",
    "AWS::DynamoDB::Table": "the new table would not know the files that landed so far",
    "AWS::SQS::Queue": "the messages that wait in it would be lost",
    "AWS::RDS::DBInstance": "Nessie would start with an empty database",
    "AWS::RDS::DBCluster": "Nessie would start with an empty database",
    "AWS::SecretsManager::Secret": "its text would be lost",
    "AWS::EC2::VPC": "Nessie's database cannot leave its network",
    "AWS::KMS::Key": "what it encrypted could not be read again",
}
# A warehouse that is set up again is refreshed by each table's next publish. Without its threads
# Slack gets new ones. Without a collector nobody reads its events.
_GROWS_AGAIN = (
    "ThreadsTable",
    *("GlueQueue", "GlueDeadLetters"),
    *("SnowflakeQueue", "SnowflakeDeadLetters", "SnowflakeMarks"),
    *("LineageQueue", "LineageDeadLetters"),
)


def loses(change: Change) -> str:
    """Return what the change would lose, "" if nothing."""
    if change.resource in _GROWS_AGAIN and change.action == "Remove":
        return ""
    gone = change.action == "Remove" or change.replacement == "True"
    return HOLDS.get(change.type, "") if gone else ""


def refuse_losses(changes: Iterable[Change], *, but: Collection[str] = ()) -> None:
    """Raise LakegateError WOULD_LOSE_DATA if a change loses data: which, and what to do.

    Resources of the types `but` may be removed.
    """
    lost = [(change, loses(change)) for change in changes if change.type not in but]
    lines = [f"    {_change_line(change)}: {reason}" for change, reason in lost if reason]
    if lines:
        advice = (
            "Nothing was changed. Put the resource back as it was deployed (its logical id, its"
            " name, its keys), or move the data first and take the resource out by hand."
        )
        message = "\n".join(["this would remove or replace what holds data:", *lines, advice])
        raise LakegateError("WOULD_LOSE_DATA", message)


def _change_line(change: Change) -> str:
    if change.action == "Remove":
        return f"{change.resource} ({change.type}) would be removed"
    changed = f" for {', '.join(change.properties)}" if change.properties else ""
    return f"{change.resource} ({change.type}) would be replaced{changed}"


def refuse_another(site: Site, chosen: Mapping[str, str]) -> None:
    """Raise LakegateError if the stage has another key or lake than it would get."""
    refuse_another_key(site, chosen)
    refuse_another_lake(site, chosen)
    refuse_foreign_lake(site, chosen)


def refuse_another_key(site: Site, chosen: Mapping[str, str]) -> None:
    """Raise LakegateError KEY_IN_USE if the stage's data could not be decrypted any more."""
    used = _deployed(site, KEY)
    if used and used != chosen.get(KEY, ""):
        message = (
            f"the stage's objects, tables and messages are encrypted by {used}: leave {KEY} as it"
            " is (KMS rotates a key under the same ARN)"
        )
        raise LakegateError("KEY_IN_USE", message)


def database_key(site: Site, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the key of Nessie's database: the one it was made with, the stage's for a new one.

    RDS changes no database's key, so an older database keeps AWS's own. Raises LakegateError
    KEY_IN_USE if the stage's file names another one than it has.
    """
    stack = site.stage.platform_stack
    wanted = {DATABASE_KEY: chosen.get(KEY, ""), **chosen}
    made = site.stacks.parameters(stack) if site.stacks.exists(stack) else wanted
    key = made.get(DATABASE_KEY, "")
    if chosen.get(DATABASE_KEY, key) != key:
        has = f"is encrypted by {key}" if key else "has AWS's own key"
        message = f"Nessie's database {has}, and RDS changes no database's key"
        raise LakegateError(
            "KEY_IN_USE", f"{message}\nTake {DATABASE_KEY} out of the stage's file."
        )
    return {DATABASE_KEY: key}


def refuse_another_lake(site: Site, chosen: Mapping[str, str]) -> None:
    """Raise LakegateError WOULD_LOSE_DATA if the stage left the bucket of its lake.

    Its stack does not have an existing one, so its changes do not tell; and of its own one they
    would tell after Nessie was deployed for another. A deleted stack leaves its own one.
    """
    used, own = _deployed(site, LAKE), replace(site.stage, lake="").lake_bucket
    if used is None and chosen.get(LAKE) and site.artifacts.region(own):
        used = ""
    if used not in (None, chosen.get(LAKE, "")):
        bucket = used or own
        message = (
            f"the stage's lake is in the bucket {bucket}: in another one it would be empty\n"
            "Nothing was changed. "
        )
        remedy = f"Set `{LAKE}: {used}` in" if used else f"Remove {LAKE} from"
        raise LakegateError("WOULD_LOSE_DATA", f"{message}{remedy} the stage's file.")


def refuse_foreign_lake(site: Site, chosen: Mapping[str, str]) -> None:
    """Raise LakegateError BAD_SETTING unless an existing lake is the account's, in the region."""
    bucket, here = chosen.get(LAKE, ""), site.stage.region
    home = site.artifacts.region(bucket) if bucket else here
    if home != here:
        where = f"is in {home}" if home else "does not exist"
        message = f"{LAKE} is {bucket!r}, which {where}, and the stage is in {here}"
        raise LakegateError("BAD_SETTING", f"{message}\nName a bucket of this account there.")


def _deployed(site: Site, name: str) -> str | None:
    """Return the deployed value of a parameter, "" for none, None without a stack."""
    if not site.stacks.exists(site.stage.stack):
        return None
    return site.stacks.parameters(site.stage.stack).get(name, "")
