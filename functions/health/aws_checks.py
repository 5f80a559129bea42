"""Check that the AWS resources of the deployment work together."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from functions.health.model import (
    Application,
    Finding,
    Notification,
    Queue,
    fail,
    ok,
    warn,
)
from lakegate.text import count

_REDEPLOY = "deploy again: the stack sets this"
_READY = {"CREATED", "STARTING", "STARTED", "STOPPING", "STOPPED"}
_MANY = 1000
_SKEW = 30.0


def check_notifications(notifications: Sequence[Notification], queue_arn: str) -> Finding:
    """Check that every landed object is reported to the upload queue."""
    mine = [each for each in notifications if each.queue_arn == queue_arn]
    if not mine:
        targets = ", ".join(each.queue_arn for each in notifications) or "no queue"
        message = f"the bucket notifies {targets}, but not {queue_arn}"
        return fail(message, "deploy again: the stack configures the bucket's events")
    if any("s3:ObjectCreated:*" in each.events and not each.is_filtered for each in mine):
        return ok("go to the upload queue")
    return fail("only some landed objects reach the upload queue", _REDEPLOY)


def check_event_bridge(*, is_told: bool) -> Finding:
    """Check that a bucket of others tells EventBridge of its objects."""
    if is_told:
        return ok("go to EventBridge")
    fix = "turn on Amazon EventBridge in the bucket's properties (docs/buckets.md)"
    return fail("the bucket does not tell EventBridge of new objects", fix)


def check_ledger(status: str) -> Finding:
    """Check that the ledger's table is reachable and can be used."""
    usable = status in ("ACTIVE", "UPDATING")
    fix = "wait until DynamoDB has finished; restore a deleted table with `lakegate ledger rebuild`"
    return ok(f"is {status}") if usable else fail(f"is {status}", fix)


def check_queue(queue: Queue) -> Finding:
    """Check that a queue is not behind."""
    fix = "see that its function runs and does not fail; raise its concurrency if it is slow"
    return _load(queue, f"{queue.waiting:,} waiting, {queue.in_flight:,} in flight", fix)


def check_work_queue(queue: Queue) -> Finding:
    """Check that shared runs take the files that wait for them."""
    fix = "see that shared runs start and do not fail; then raise SharedRuns"
    return _load(queue, f"{count(queue.waiting, 'file')} waiting, {queue.in_flight:,} in work", fix)


def _load(queue: Queue, load: str, fix: str) -> Finding:
    return warn(load, fix) if queue.waiting > _MANY else ok(load)


def check_dead_letters(queue: Queue) -> Finding:
    """Check that a dead-letter queue is empty."""
    many = queue.waiting + queue.in_flight
    fix = "read the cause in the functions' logs; the sweep alerts on what it cannot process"
    message = f"{count(many, 'message')} could not be processed"
    return warn(message, fix) if many else ok("empty")


def check_application(
    application: Application, expected_label: str, least_cpus: int
) -> list[Finding]:
    """Check that the EMR application can run jobs of the required release.

    One that has a job's vCPUs for its driver alone starts it, and its executor never comes.
    """
    wrong = []
    if application.state not in _READY:
        fix = "create it with infra/platform.yml, and deploy again with its new id"
        wrong.append(fail(f"{application.id} is {application.state}", fix))
    elif application.state != "STARTED" and not application.auto_start:
        fix = "start it, or turn on its automatic start (AutoStartConfiguration)"
        wrong.append(
            fail(f"{application.id} is {application.state} and does not start automatically", fix)
        )
    if expected_label and application.release_label != expected_label:
        fix = f"deploy the platform with EmrRelease {expected_label}"
        message = f"runs {application.release_label}; the job requires {expected_label}"
        wrong.append(fail(message, fix))
    if application.most_cpus is not None and application.most_cpus < least_cpus:
        message = f"{application.id} has {application.most_cpus} vCPUs at most; a job takes"
        fix = "raise its maximum capacity: until then jobs wait for an executor for ever"
        wrong.append(fail(f"{message} {least_cpus}, for a driver and an executor", fix))
    return wrong or [ok(f"{application.id} is {application.state}, {application.release_label}")]


def check_job_code(there: Mapping[str, bool]) -> Finding:
    """Check that the job's files are where its runs expect them."""
    missing = [address for address, is_there in there.items() if not is_there]
    if missing:
        fix = "deploy again: that uploads the job's code"
        return fail(f"missing: {', '.join(missing)}", fix)
    return ok(f"is at {next(iter(there)).rpartition('/')[0]}")


def check_clocks(now: datetime, others: Mapping[str, datetime]) -> Finding:
    """Check that no clock is so wrong that tokens and signatures are refused."""
    skews = {name: (date - now).total_seconds() for name, date in others.items()}
    off = [f"{name}'s by {skew:+.0f} s" for name, skew in skews.items() if abs(skew) > _SKEW]
    if off:
        fix = "synchronize the wrong clock by NTP"
        return fail(f"differ: {', '.join(off)}", fix)
    return ok(f"agree within {_SKEW:.0f} s with {' and '.join(others)}")
