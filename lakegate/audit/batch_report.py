"""The one report of a batch, from the reports of its files."""

from collections.abc import Sequence
from dataclasses import replace

from lakegate.audit.report import AuditReport, Reason, Verdict, checks_of
from lakegate.job.landing import BATCH, LandedObject

_WORST = (Verdict.ERRORED, Verdict.REJECTED)


def together(manifest: LandedObject, parts: Sequence[AuditReport]) -> AuditReport:
    """Return the report of a batch from those of its files, at least one, in order.

    It passes if all of them pass. If a file has no rows on the branch, the report has no audited
    hash: then nothing can be published, even on request.
    """
    first, last = parts[0], parts[-1]
    verdict, reason = _verdict(manifest, parts)
    return replace(
        first,
        verdict=verdict,
        reason=reason,
        table=BATCH,
        audited_hash=last.audited_hash if all(part.audited_hash for part in parts) else "",
        source=manifest,
        format="",
        contract_id="",
        contract_version="",
        contract_sha256="",
        transform="",
        finished_at=last.finished_at,
        checks=checks_of(parts, manifest.key),
        steps=tuple(
            replace(step, name=f"{_file(manifest, part)}: {step.name}")
            for part in parts
            for step in part.steps
        ),
        files=(),
        records=(),
        rows_written=sum(part.rows_written for part in parts),
        rows_read=sum(part.rows_read for part in parts),
        rows_rejected=sum(part.rows_rejected for part in parts),
        rows_unreadable=sum(part.rows_unreadable for part in parts),
        rows_nulled=sum(part.rows_nulled for part in parts),
        source_rows=sum(part.source_rows for part in parts),
        schema_changes=tuple(f"{p.table}: {each}" for p in parts for each in p.schema_changes),
        parts=tuple(parts),
        wrong_columns=None,
    )


def _verdict(manifest: LandedObject, parts: Sequence[AuditReport]) -> tuple[Verdict, Reason | None]:
    """Return the worst of the files' verdicts, and the file that it comes from."""
    for worst in _WORST:
        if failed := [part for part in parts if part.verdict is worst]:
            why = failed[0].reason or Reason("UNKNOWN", "its report does not say why")
            more = f" ({len(failed)} of {len(parts)} files were {worst})" if failed[1:] else ""
            named = f"{_file(manifest, failed[0])} for {failed[0].table}"
            return worst, Reason(why.code, f"{named}: {why.message}{more}")
    return Verdict.PASSED, None


def _file(manifest: LandedObject, part: AuditReport) -> str:
    return part.source.key.removeprefix(manifest.key.rpartition("/")[0] + "/")
