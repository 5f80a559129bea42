"""Examine a deployment from inside its network."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from functions.adapters.nessie import MAIN, Catalog
from functions.health import aws_checks, nessie_checks
from functions.health.aws_probe import AwsProbe
from functions.health.model import Check, Finding, Queue, carry_out
from functions.health.nessie_checks import NessieProbe
from functions.settings import Settings
from lakegate.audit.audit_tables import TABLES
from lakegate.job.jobspec import JOB_FILES

_NETWORK = "check that the functions' subnets and security group reach it (infra/platform.yml)"
_RIGHTS = "deploy again, so that CheckupRole has access; then check the network route"


@dataclass(frozen=True)
class Probes:
    """The probes and settings of an examination; `catalog` takes a token, `secret` a name."""

    settings: Settings
    aws: AwsProbe
    nessie: NessieProbe
    catalog: Callable[[str], Catalog]
    secret: Callable[[str], str]
    now: Callable[[], datetime]


@dataclass(frozen=True)
class Expected:
    """The versions that the caller expects; "" for any."""

    nessie: str = ""
    emr_release_label: str = ""


def examine(probes: Probes, expected: Expected) -> list[Finding]:
    """Return all findings from inside the network, each with its remedy."""
    return carry_out([*_catalog_checks(probes, expected), *_aws_checks(probes, expected)])


def examine_access(probes: Probes) -> list[Finding]:
    """Return the findings on whom Nessie lets in, and who may write to main."""
    return carry_out(list(_access_checks(probes)))


def _access_checks(probes: Probes) -> Iterator[Check]:
    uri, nessie = probes.settings.nessie_uri, probes.nessie
    yield Check(
        "Nessie",
        lambda: nessie_checks.check_anonymous_answer(uri, nessie.anonymous_answer()),
        _NETWORK,
    )
    for role in nessie_checks.ROLES:
        token = partial(probes.secret, probes.settings.token_secret(role))
        yield nessie_checks.role_check(role, token, nessie, probes.now)


def _catalog_checks(probes: Probes, expected: Expected) -> Iterator[Check]:
    uri, nessie = probes.settings.nessie_uri, probes.nessie
    yield from _access_checks(probes)
    yield Check(
        "Nessie's connection",
        lambda: [nessie_checks.check_connection(uri)],
        _NETWORK,
    )
    yield Check(
        "Nessie's version",
        lambda: [nessie_checks.check_version(nessie.version(), expected.nessie)],
        _NETWORK,
    )
    yield Check("main", lambda: [_main(probes)], "see the findings on Nessie and on the tokens")


def _main(probes: Probes) -> Finding:
    catalog = probes.catalog(probes.secret(probes.settings.token_secret("reader")))
    if not catalog.begun():
        return nessie_checks.check_main(begun=False, lacking=[])
    head = catalog.head(MAIN)
    lacking = [table.name for table in TABLES if not catalog.metadata(head, table.name)]
    return nessie_checks.check_main(begun=True, lacking=lacking)


def _aws_checks(probes: Probes, expected: Expected) -> Iterator[Check]:
    settings, aws = probes.settings, probes.aws
    yield Check("landing bucket's events", lambda: [_notifications(probes)], _RIGHTS)
    for bucket in settings.landing_buckets[1:]:
        yield Check(f"events of {bucket}", partial(_told, aws, bucket), _RIGHTS)
    table = settings.ledger_table
    yield Check("ledger", lambda: [aws_checks.check_ledger(aws.table(table))], _RIGHTS)
    carrying = (settings.upload_queue, settings.job_run_queue, settings.alert_queue)
    for url in (*carrying, settings.announcement_queue):
        yield _queue_check(aws, url, aws_checks.check_queue)
    yield _queue_check(aws, settings.work_queue, aws_checks.check_work_queue)
    dead = (settings.upload_dead_letters, settings.job_run_dead_letters)
    for url in (*dead, settings.alert_dead_letters):
        yield _queue_check(aws, url, aws_checks.check_dead_letters)
    for id_ in settings.emr_applications:
        yield Check(
            f"EMR application {id_}",
            partial(_application, probes, id_, expected.emr_release_label),
            "check the application's id, and that the network has its endpoint",
        )
    yield Check("job's code", lambda: [aws_checks.check_job_code(_job_code(probes))], _RIGHTS)
    yield Check("clocks", lambda: [aws_checks.check_clocks(probes.now(), _dates(probes))], _NETWORK)


def _queue_check(aws: AwsProbe, url: str, judge: Callable[[Queue], Finding]) -> Check:
    return Check(f"queue {url.rsplit('/', 1)[-1]}", lambda: [judge(aws.queue(url))], _RIGHTS)


def _notifications(probes: Probes) -> Finding:
    queue = probes.aws.queue(probes.settings.upload_queue)
    return aws_checks.check_notifications(
        probes.aws.notifications(probes.settings.landing_bucket), queue.arn
    )


def _told(aws: AwsProbe, bucket: str) -> list[Finding]:
    return [aws_checks.check_event_bridge(is_told=aws.tells_event_bridge(bucket))]


def _application(probes: Probes, id_: str, label: str) -> list[Finding]:
    """Check an application; workers of own runs have the set size, those of shared ones 1 vCPU."""
    settings = probes.settings
    cores = settings.job_worker_cores if id_ == settings.emr_application_id else 1
    return aws_checks.check_application(probes.aws.application(id_), label, 2 * cores)


def _job_code(probes: Probes) -> Mapping[str, bool]:
    lake, code = probes.settings.lake_bucket, probes.settings.job_code
    keys = {f"{code}/{name}": f"{code}/{name}".removeprefix(f"s3://{lake}/") for name in JOB_FILES}
    return {address: probes.aws.has_object(lake, key) for address, key in keys.items()}


def _dates(probes: Probes) -> dict[str, datetime]:
    """Return the times of servers that report it; Nessie does so only behind a proxy."""
    nessie = probes.nessie.anonymous_answer().date
    return {"S3": probes.aws.date(probes.settings.lake_bucket)} | (
        {"Nessie": nessie} if nessie else {}
    )
