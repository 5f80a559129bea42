"""What a holder of a job's token may forge: branches, reports that its policy allows, verdicts.

Such code runs in the job of one file: it may write any branch of jobs, and any key that has the
file's id in it. No row that it writes may ever come to main.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Missing
from functions.model.ingestion import Ingestion, State
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import (
    branch_name,
    group_branch,
    group_reports_key,
    report_key,
    run_name,
)
from lakegate.job.shared_run import Judged
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.job import passed_report
from tests.fakes.stage import Stage

_ROW = "forged"
# Of the file whose job forges, or of one whose branch or verdict it spoils.
_ENDS = {
    "errored UNAUDITED_ROWS",
    "errored FOREIGN_REPORT",
    "errored CONTRADICTION",
    "errored JOB_FAILED",
}


class Forgery(Enum):
    """What is forged."""

    COMPACTION = "a branch and a report look like a compaction's"
    ON_A_COMPACTION = "rows come onto the branch of a compaction that is under way"
    NEXT_ATTEMPT = "a branch has the name of the next attempt of a file"
    GROUP = "a report says that two files share a branch"
    GROUP_ROWS = "the branch of a group has a row that no report counts"
    VERDICT = "a message of the verdict queue names what another run does"


@dataclass(frozen=True)
class Forge:
    """Code in the job of the `nth` file forges something."""

    what: Forgery
    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Forge it, if there is anything like it."""
        deployment = stage.deployment
        known = list(deployment.ledger.all())
        if known:
            deployment.others.idle = False  # reconcile speaks of strange branches
            _FORGED[self.what](deployment, known[self.nth % len(known)])
            stage.excused |= _ENDS
            stage.forgotten += 1  # as a forged attempt may look like one that began


def _compaction(deployment: Deployment, own: Ingestion) -> None:
    """Replace all rows of the table, with the reports that releases know or knew."""
    moment = deployment.clock.moment.strftime("%Y%m%dT%H%M%S")
    id_ = f"upkeep-{moment}-{own.id}"
    branch = f"upkeep/{TABLE}/{id_}"
    base = deployment.catalog.head(MAIN)
    rows = len(table.files) if (table := deployment.catalog.table(MAIN, TABLE)) else 0
    at = _write(deployment, branch, *(f"{_ROW} {nth}" for nth in range(rows)), alone=True)
    same = {"rows": 3 * rows, "hashes": "1"}
    report = {"table": TABLE, "branch": branch, "base_hash": base, "before": same, "after": same}
    for key, hash_ in {
        f"staging/{id_}/compaction.json": "audited_hash",
        f"upkeep/{id_}.json": "rewritten_hash",
    }.items():
        deployment.lake.put_text(key, json.dumps({**report, hash_: at}).encode())


def _on_a_compaction(deployment: Deployment, own: Ingestion) -> None:
    for branch in deployment.catalog.branches("upkeep/"):
        _write(deployment, branch, _ROW)


def _next_attempt(deployment: Deployment, own: Ingestion) -> None:
    """Write on the branch of a file's next attempt, before it begins."""
    attempt = own.attempt + (own.state is not State.LANDED)
    name = branch_name(own.table or TABLE, own.landed.key, own.id, attempt)
    if name not in deployment.catalog.references():
        _write(deployment, name, _ROW)


def _group(deployment: Deployment, own: Ingestion) -> None:
    """Report for another attempt of its own file that others are in its group, and say so."""
    if own.table != TABLE:
        return
    others = tuple(each.id for each in deployment.ledger.all() if each.id != own.id)[:1]
    branch = group_branch(TABLE, deployment.clock.moment.strftime("%H%M%S%f").zfill(16))
    base, at = deployment.catalog.head(MAIN), _write(deployment, branch, _ROW)
    attempt = own.attempt + 1
    key = report_key(TABLE, own.id, attempt)
    places = (deployment.lake.bucket, "", "", key, "", "")
    spec = JobSpec(own.id, attempt, own.landed, TABLE, branch, base, *places)
    by = own.terms.contract_sha256
    report = replace(passed_report(spec, at), group=(own.id, *others), contract_sha256=by)
    deployment.lake.put_report(key, report.to_json())
    deployment.hung.add(key)
    deployment.tell_verdict(Judged("forged", (key,)))


def _group_rows(deployment: Deployment, own: Ingestion) -> None:
    """Write on the branch of a group, and have its reports say that this was audited."""
    key = report_key(own.table or TABLE, own.id, own.attempt)
    try:
        report = deployment.lake.report(key)
    except Missing:
        return
    is_there = report.branch in deployment.catalog.references()  # else its rows would be as many
    if not (report.group and own.awaits_shared_run and is_there):
        return
    at = _write(deployment, report.branch, _ROW)
    for id_ in report.group:
        key = report_key(report.table, id_, report.attempt)
        with suppress(Missing):
            forged = replace(deployment.lake.report(key), audited_hash=at)
            deployment.lake.put_text(key, forged.to_json().encode())
    deployment.lake.lose(group_reports_key(report.table, report.branch))


def _verdict(deployment: Deployment, own: Ingestion) -> None:
    """Name the report of an attempt that has none yet, and the attempt as one that died."""
    key = report_key(own.table or TABLE, own.id, own.attempt)
    deployment.hung.add(key)
    deployment.tell_verdict(Judged("forged", (key,), (run_name(own.id, own.attempt),)))


def _write(deployment: Deployment, branch: str, *rows: str, alone: bool = False) -> str:
    """Write rows on a branch, which is created if need be; return its head."""
    catalog = deployment.catalog
    if branch not in catalog.references():
        catalog.fork(branch, MAIN)
        deployment.others.forged.add(branch)
    table = catalog.table(branch, TABLE) or FakeTable(f"uuid of {branch}")
    kept = replace(table, files=()) if alone else table
    return catalog.commit(branch, TABLE, kept.append(*rows))


_FORGED: dict[Forgery, Callable[[Deployment, Ingestion], None]] = {
    Forgery.COMPACTION: _compaction,
    Forgery.ON_A_COMPACTION: _on_a_compaction,
    Forgery.NEXT_ATTEMPT: _next_attempt,
    Forgery.GROUP: _group,
    Forgery.GROUP_ROWS: _group_rows,
    Forgery.VERDICT: _verdict,
}
