"""How what AWS keeps for the deployment should stand."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from functions.health.model import (
    Application,
    Bucket,
    Finding,
    Notification,
    Queue,
    Table,
    fail,
    ok,
    warn,
)
from functions.settings import Settings

INDEXES = {
    "by_state": ("state", "landed_at"),
    "unfinished": ("unfinished", "saved_at"),
    "unrecorded": ("unrecorded", "saved_at"),
    "by_etag": ("etag", "landed_at"),
    "by_key": ("key", "landed_at"),
    "by_day": ("landed_day", "landed_at"),
}
_REDEPLOY = "deploy again: the stack sets this"
_READY = {"CREATED", "STARTING", "STARTED", "STOPPING", "STOPPED"}
_MANY = 1000
_SKEW = 30.0


def of_settings(settings: Settings, stage: str) -> list[Finding]:
    """The settings fit together: all of one stage, the job's code from the lake bucket."""
    uri = urlsplit(settings.nessie_uri)
    tokens = {settings.job_token_secret, settings.nessie_token_secret}
    faults = {
        f"Nessie's address {settings.nessie_uri} is none without a path": (
            uri.scheme not in ("http", "https") or not uri.netloc or uri.path not in ("", "/")
        ),
        f"the job's code is not in the lake bucket {settings.lake_bucket}": (
            not settings.job_code.startswith(f"s3://{settings.lake_bucket}/")
        ),
        f"landing bucket and lake bucket are both {settings.lake_bucket}": (
            settings.landing_bucket == settings.lake_bucket
        ),
        f"the tokens are not all of stage {stage}: {', '.join(sorted(tokens))}": not all(
            f"/{stage}/" in name for name in tokens
        ),
    }
    found = [fail("settings", fault, _REDEPLOY) for fault, is_so in faults.items() if is_so]
    return found or [ok("settings", f"are complete, and all of stage {stage}")]


def of_bucket(check: str, found: Bucket, *, is_lake: bool) -> list[Finding]:
    """A bucket keeps versions, encrypts, and is for TLS and its owner alone; a lake stays whole."""
    faults = {
        "keeps no versions": found.versioning != "Enabled",
        "is not encrypted by default": not found.encryption,
        "does not refuse requests without TLS": not _refuses_plain(found.policy),
        "does not block public access": not found.is_private,
        "lets others than the clean-up role delete": is_lake and not _refuses_deletes(found.policy),
    }
    wrong = [fail(check, fault, _REDEPLOY) for fault, is_so in faults.items() if is_so]
    return wrong or [ok(check, f"versioned, encrypted ({found.encryption}), TLS only, not public")]


def of_notifications(found: Sequence[Notification], queue_arn: str) -> Finding:
    """All that lands is told to the upload queue."""
    check = "landing bucket's events"
    mine = [each for each in found if each.queue_arn == queue_arn]
    if not mine:
        told = ", ".join(each.queue_arn for each in found) or "nobody"
        message = f"what lands is told to {told}, and not to {queue_arn}"
        return fail(check, message, "deploy again: the stack has the bucket notify its queue")
    if any("s3:ObjectCreated:*" in each.events and not each.is_filtered for each in mine):
        return ok(check, "go to the upload queue")
    return fail(check, "only some of what lands is told to the upload queue", _REDEPLOY)


def of_ledger(found: Table) -> list[Finding]:
    """The ledger's table is ordered as the functions ask it."""
    wrong = []
    if found.keys.attributes != ("id",):
        fix = "make the table anew as the template has it, then `lakegate ledger rebuild`"
        wrong.append(fail("ledger", f"its key is {', '.join(found.keys.attributes)}, not id", fix))
    for name, wanted in INDEXES.items():
        index = found.indexes.get(name)
        if index is None or index.attributes != wanted:
            there = ", ".join(index.attributes) if index else "missing"
            message = f"the index {name} is {there}, not {', '.join(wanted)}"
            wrong.append(fail("ledger", message, _REDEPLOY))
        elif not index.is_active:
            fix = "wait until DynamoDB has built it"
            wrong.append(warn("ledger", f"the index {name} is not active yet", fix))
    return wrong or [ok("ledger", f"has its key and its {len(INDEXES)} indexes")]


def of_queue(found: Queue) -> Finding:
    """A queue is not behind, and has somewhere for what cannot be worked off."""
    check, told = f"queue {found.name}", f"{found.waiting:,} waiting, {found.in_flight:,} in work"
    if not found.dead_letters_arn:
        return fail(check, "has no dead-letter queue: what fails is lost", _REDEPLOY)
    if found.waiting > _MANY:
        fix = "see that its function runs and does not fail; raise its concurrency if it is slow"
        return warn(check, told, fix)
    return ok(check, told)


def of_dead_letters(found: Queue) -> Finding:
    """No message was given up."""
    check, many = f"queue {found.name}", found.waiting + found.in_flight
    if not many:
        return ok(check, "empty")
    fix = (
        "read in the functions' logs why they failed; what the sweep cannot handle it tells people"
    )
    return warn(check, f"{many:,} messages could not be worked off", fix)


def of_application(found: Application, expected_label: str) -> list[Finding]:
    """The EMR application can run jobs, of the release that the job is made for."""
    check, wrong = "EMR application", []
    if found.state not in _READY:
        fix = "make it with infra/platform.yml, and deploy again with its new id"
        wrong.append(fail(check, f"{found.id} is {found.state}", fix))
    elif found.state != "STARTED" and not found.auto_start:
        fix = "start it, or turn on that it starts by itself (AutoStartConfiguration)"
        wrong.append(fail(check, f"{found.id} is {found.state} and does not start by itself", fix))
    if expected_label and found.release_label != expected_label:
        fix = f"deploy the platform with EmrRelease {expected_label}"
        message = f"runs {found.release_label}; the job is made for {expected_label}"
        wrong.append(fail(check, message, fix))
    return wrong or [ok(check, f"{found.id} is {found.state}, {found.release_label}")]


def of_job_code(there: Mapping[str, bool]) -> Finding:
    """The job's files are where its runs look for them."""
    missing = [address for address, is_there in there.items() if not is_there]
    if missing:
        fix = "deploy again: that uploads the job's code"
        return fail("job's code", f"missing: {', '.join(missing)}", fix)
    return ok("job's code", f"is at {next(iter(there)).rpartition('/')[0]}")


def of_clocks(now: datetime, others: Mapping[str, datetime]) -> Finding:
    """Nobody's clock is off by so much that tokens and signatures are refused."""
    skews = {name: (date - now).total_seconds() for name, date in others.items()}
    off = [f"{name}'s by {skew:+.0f} s" for name, skew in skews.items() if abs(skew) > _SKEW]
    if off:
        fix = "have the machine that is off set its clock by NTP"
        return fail("clocks", f"differ: {', '.join(off)}", fix)
    return ok("clocks", f"agree within {_SKEW:.0f} s with {' and '.join(others)}")


def _refuses_plain(policy: str) -> bool:
    return any(
        {"s3:*", "*"} & set(_list(statement.get("Action")))
        and _condition(statement, "Bool", "aws:SecureTransport") == "false"
        for statement in _denials(policy)
    )


def _refuses_deletes(policy: str) -> bool:
    return any(
        any(str(action).startswith("s3:Delete") for action in _list(statement.get("Action")))
        for statement in _denials(policy)
    )


def _denials(policy: str) -> list[dict[str, Any]]:
    """The statements that refuse something to anybody."""
    statements = _list(json.loads(policy).get("Statement", [])) if policy else []
    return [s for s in statements if s.get("Effect") == "Deny" and _is_anybody(s.get("Principal"))]


def _is_anybody(principal: Any) -> bool:
    return principal == "*" or (isinstance(principal, dict) and "*" in _list(principal.get("AWS")))


def _condition(statement: Mapping[str, Any], operator: str, key: str) -> str:
    return str(statement.get("Condition", {}).get(operator, {}).get(key, "")).lower()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
