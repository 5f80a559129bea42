"""The policy that narrows the job's role to one ingestion, or to the files of a shared run.

A job run may do what both its role and this policy allow (EMR Serverless User Guide, "Execution
IAM policy"). The text has at most 2,048 characters (API reference, JobRunExecutionIamPolicy), so it
does not repeat what the role gives to every run, such as the secret and the log group.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from functions.settings import Settings
from lakegate.job.batch import folder, tables_of
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import ALL, SharedRun

MOST = 2048
_LONGEST_PATH, _LONGEST_FOLDER = 120, 300
# The API accepts no other characters. How IAM counts these is undocumented.
_UNWRITABLE = re.compile(r"[^\x20-\x7e\xa0-\xff]+")
_READ = ("s3:GetObject", "s3:GetObjectVersion")
_WRITE = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload")
_TAKE = (
    *("sqs:ReceiveMessage", "sqs:DeleteMessage"),
    *("sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"),
)
_REPORTS_STAGING = 7 * "?"  # both folders in one pattern, as both names have seven letters
_ALIKE = ("s3:ListBucket", "secretsmanager:GetSecretValue", "logs:*")
_KEYS = ("kms:Decrypt", "kms:GenerateDataKey")  # the role names them, and through which services


def run_policy(spec: JobSpec, settings: Settings) -> str:
    """Return the policy of one job run, as JSON of at most MOST characters.

    The run may read its landed object, the contract, baselines, the job's code and the report of an
    earlier audit that its spec names. It may write
    keys that contain the ingestion's id (reports, staged copies, results, quarantine) and its
    table; a re-audit only reads the table. It reads all tables only if its contract requires it. A
    name that is too long, or has characters that a policy cannot have, is widened by `*`. A batch
    with too many tables gets their namespaces, or all tables.

    The run that rewrites a table's files for a compaction may use only that table, and leaves no
    report. The one that compares may only read the table, and write its report, which no other run
    may write.
    """
    if spec.compact:
        return _compaction_policy(spec, settings)
    if spec.parts:
        return next(text for text in _batch_policies(spec, settings) if len(text) <= MOST)
    without = _text(spec, settings, (), _tables([spec.table]))
    landed = () if spec.reaudit_base else _landed(spec, settings, MOST - len(without))
    return _text(spec, settings, landed, _tables([spec.table]))


def shared_run_policy(run: SharedRun, settings: Settings) -> str:
    """Return the policy of a shared run, as JSON of at most MOST characters.

    Its files are not known yet, so it may read every landed object and contract, and write every
    table and report, except of the tables that are kept apart from it (`widened`). It takes files
    from its work queue, and sends to its verdict queue. It reads no text of a change, since changes
    have runs of their own.
    """
    lake = f"{_s3(settings)}{run.lake_bucket}/"
    landing = [f"{_s3(settings)}{bucket}/*" for bucket in settings.landing_buckets]
    written = [f"{lake}{path}/*" for path in ("warehouse", "reports", "staging")]
    read = [f"{lake}{path}/*" for path in ("contracts", "baselines", _release(run, settings))]
    denied = [f"{lake}{place}" for table in run.apart for place in _places(table)]
    statements = (
        *([{**_allow(["s3:*"], denied), "Effect": "Deny"}] if denied else []),
        _allow(_READ, [*landing, *read]),
        _allow(_WRITE, written),
        _allow(_TAKE, [_queue(run.work_queue, settings)]),
        _allow(("sqs:SendMessage",), [_queue(run.verdict_queue, settings)]),
        _alike(settings),
    )
    return _policy(*statements)


def widened(run: SharedRun, settings: Settings) -> SharedRun:
    """Return the run, apart from more tables if its policy has no room to name the given ones.

    These are the others of their namespaces, or else all: then each file gets a run of its own.
    """
    spaces = dict.fromkeys(f"{table.partition('.')[0]}.*" for table in run.apart)
    ways = (replace(run, apart=apart) for apart in (run.apart, tuple(spaces)))
    fitting = (way for way in ways if len(shared_run_policy(way, settings)) <= MOST)
    return next(fitting, replace(run, apart=(ALL,)))


def _places(pattern: str) -> list[str]:
    """Return where the data files, reports and staged copies of a pattern's tables lie."""
    if pattern == ALL:
        return ["warehouse/*", "reports/*", "staging/*"]
    space, _, table = pattern.partition(".")
    if table == "*":
        return [f"warehouse/{space}/*", f"{_REPORTS_STAGING}/{pattern}"]
    return [*_tables([pattern]), f"{_REPORTS_STAGING}/{pattern}/*"]


def _queue(address: str, settings: Settings) -> str:
    """Return the ARN of the queue at an address, which ends with its account and name."""
    account, name = address.split("/")[-2:]
    return f"arn:{_partition(settings)}:sqs:*:{account}:{name}"


def _compaction_policy(spec: JobSpec, settings: Settings) -> str:
    lake = f"{_s3(settings)}{spec.lake_bucket}/"
    table = [lake + place for place in _tables([spec.table])]
    code = f"{lake}{_release(spec, settings)}/*"
    report = lake + literal(spec.report_key)
    read, written = ([code, *table], [report]) if spec.audited_hash else ([code], table)
    return _policy(_allow(_READ, read), _allow(_WRITE, written), _alike(settings))


def _batch_policies(spec: JobSpec, settings: Settings) -> Iterator[str]:
    """Yield the possible policies of a batch, narrowest first; it reads its whole folder."""
    bucket = f"{_s3(settings)}{spec.landed.bucket}/"
    landed = [f"{bucket}{literal(folder(spec.landed.key), _LONGEST_FOLDER)}*"]
    names = tables_of(spec.parts)
    spaces = dict.fromkeys(name.partition(".")[0] for name in names)
    for places in (_tables(names), [f"warehouse/{space}/*" for space in spaces], ["warehouse/*"]):
        yield _text(spec, settings, landed, places)


def _tables(names: Iterable[str]) -> list[str]:
    """Return the locations of tables; Nessie creates each in a folder `<table>_<uuid>`.

    A table's name has no hyphen, so such a pattern matches no other table.
    """
    places = (literal(f"warehouse/{n.replace('.', '/')}", _LONGEST_PATH) for n in names)
    return [f"{place}{end}" for place in places for end in ("_????????-*", "/*")]


def _text(spec: JobSpec, settings: Settings, landed: Sequence[str], tables: Sequence[str]) -> str:
    lake = f"{_s3(settings)}{spec.lake_bucket}/"
    names = (spec.contract_key, f"baselines/{spec.table}.json")
    read = [literal(name, _LONGEST_PATH) for name in names]
    if spec.parts:
        read = ["contracts/*", "baselines/*"]
    read += [f"{_release(spec, settings)}/*"]
    read += [literal(spec.earlier_report, _LONGEST_PATH)] if spec.earlier_report else []
    read += ["warehouse/*"] * spec.reads_others
    written = [f"*{spec.ingestion}*"]
    (read if spec.reaudit_base else written).extend(tables)
    reading = _allow(_READ, [*landed, *(lake + path for path in read)])
    writing = _allow(_WRITE, [lake + path for path in written])
    return _policy(reading, writing, _alike(settings))


def _policy(*statements: dict[str, Any]) -> str:
    return _compact({"Version": "2012-10-17", "Statement": statements})


def _alike(settings: Settings) -> dict[str, Any]:
    """Return what every run may do wherever the role may."""
    return _allow((*_ALIKE, *(_KEYS if settings.uses_keys else ())), ["*"])


def _allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _landed(spec: JobSpec, settings: Settings, room: int) -> Sequence[str]:
    """Return the landed object and a control file beside it, within `room` characters of JSON."""
    key, bucket = spec.landed.key, f"{_s3(settings)}{spec.landed.bucket}/"
    both = (bucket + literal(key), f"{bucket}{literal(key)}.control.*")
    if len(_compact(both)) <= room:
        return both
    return (bucket + literal(key, room - len(_compact([bucket]))),)


def literal(text: str, most: int = 10_000) -> str:
    """Return an IAM pattern for this exact text, in at most `most` characters of JSON.

    Wildcards and characters that begin a variable are escaped (IAM User Guide, "Policy variables:
    special characters"). Characters that cannot be written, and what exceeds the limit, become `*`.
    """
    pattern, size = "", 0
    for part in re.findall(rf"{_UNWRITABLE.pattern}|.", text):
        more = _escaped(part)
        size += len(_compact(more)) - 2
        if size > most - (more != "*"):
            return f"{pattern.rstrip('*')}*"
        pattern += more
    return pattern


def _escaped(part: str) -> str:
    if part in ("*", "?", "$"):
        return f"${{{part}}}"
    return "*" if _UNWRITABLE.match(part) else part


def _release(run: JobSpec | SharedRun, settings: Settings) -> str:
    """Return the folder of the job's code in the lake bucket."""
    return literal(settings.job_code.removeprefix(f"s3://{run.lake_bucket}/"))


def _s3(settings: Settings) -> str:
    return f"arn:{_partition(settings)}:s3:::"


def _partition(settings: Settings) -> str:
    return settings.emr_role_arn.split(":")[1]


def _compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
