"""Check how AWS resources of the deployment are configured."""

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
    """Check that the settings fit together: one stage, job code in the lake bucket."""
    uri = urlsplit(settings.nessie_uri)
    tokens = {settings.job_token_secret, settings.nessie_token_secret}
    faults = {
        f"Nessie's address {settings.nessie_uri} is not an address without a path": (
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
    return found or [ok("settings", f"are complete, all of stage {stage}")]


def of_bucket(check: str, found: Bucket, *, is_lake: bool) -> list[Finding]:
    """Check a bucket: versioned, encrypted, TLS only, private; a lake without deletes."""
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
    """Check that every landed object is reported to the upload queue."""
    check = "landing bucket's events"
    mine = [each for each in found if each.queue_arn == queue_arn]
    if not mine:
        targets = ", ".join(each.queue_arn for each in found) or "no queue"
        message = f"the bucket notifies {targets}, but not {queue_arn}"
        return fail(check, message, "deploy again: the stack configures the bucket's events")
    if any("s3:ObjectCreated:*" in each.events and not each.is_filtered for each in mine):
        return ok(check, "go to the upload queue")
    return fail(check, "only some landed objects reach the upload queue", _REDEPLOY)


def of_ledger(found: Table) -> list[Finding]:
    """Check the key and indexes of the ledger's table."""
    wrong = []
    if found.keys.attributes != ("id",):
        fix = "create the table again as in the template, then `lakegate ledger rebuild`"
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
    """Check that a queue is not behind and has a dead-letter queue."""
    check, load = f"queue {found.name}", f"{found.waiting:,} waiting, {found.in_flight:,} in flight"
    if not found.dead_letters_arn:
        return fail(check, "has no dead-letter queue: failed messages are lost", _REDEPLOY)
    if found.waiting > _MANY:
        fix = "see that its function runs and does not fail; raise its concurrency if it is slow"
        return warn(check, load, fix)
    return ok(check, load)


def of_dead_letters(found: Queue) -> Finding:
    """Check that a dead-letter queue is empty."""
    check, many = f"queue {found.name}", found.waiting + found.in_flight
    if not many:
        return ok(check, "empty")
    fix = "read the cause in the functions' logs; the sweep alerts on what it cannot process"
    return warn(check, f"{many:,} messages could not be processed", fix)


def of_application(found: Application, expected_label: str) -> list[Finding]:
    """Check that the EMR application can run jobs of the required release."""
    check, wrong = "EMR application", []
    if found.state not in _READY:
        fix = "create it with infra/platform.yml, and deploy again with its new id"
        wrong.append(fail(check, f"{found.id} is {found.state}", fix))
    elif found.state != "STARTED" and not found.auto_start:
        fix = "start it, or turn on its automatic start (AutoStartConfiguration)"
        wrong.append(
            fail(check, f"{found.id} is {found.state} and does not start automatically", fix)
        )
    if expected_label and found.release_label != expected_label:
        fix = f"deploy the platform with EmrRelease {expected_label}"
        message = f"runs {found.release_label}; the job requires {expected_label}"
        wrong.append(fail(check, message, fix))
    return wrong or [ok(check, f"{found.id} is {found.state}, {found.release_label}")]


def of_job_code(there: Mapping[str, bool]) -> Finding:
    """Check that the job's files are where its runs expect them."""
    missing = [address for address, is_there in there.items() if not is_there]
    if missing:
        fix = "deploy again: that uploads the job's code"
        return fail("job's code", f"missing: {', '.join(missing)}", fix)
    return ok("job's code", f"is at {next(iter(there)).rpartition('/')[0]}")


def of_clocks(now: datetime, others: Mapping[str, datetime]) -> Finding:
    """Check that no clock is so wrong that tokens and signatures are refused."""
    skews = {name: (date - now).total_seconds() for name, date in others.items()}
    off = [f"{name}'s by {skew:+.0f} s" for name, skew in skews.items() if abs(skew) > _SKEW]
    if off:
        fix = "synchronize the wrong clock by NTP"
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
    """Return the statements that deny everybody something."""
    statements = _list(json.loads(policy).get("Statement", [])) if policy else []
    return [s for s in statements if s.get("Effect") == "Deny" and _is_anybody(s.get("Principal"))]


def _is_anybody(principal: Any) -> bool:
    return principal == "*" or (isinstance(principal, dict) and "*" in _list(principal.get("AWS")))


def _condition(statement: Mapping[str, Any], operator: str, key: str) -> str:
    return str(statement.get("Condition", {}).get(operator, {}).get(key, "")).lower()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
