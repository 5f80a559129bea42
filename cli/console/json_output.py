"""Convert ingestions and audit reports to the JSON that `--json` prints."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from functions.model.ingestion import Ingestion
from lakegate.audit.report import AuditReport
from lakegate.text import escaped_json


def ingestion_json(ingestion: Ingestion) -> dict[str, Any]:
    """Return an ingestion as JSON; `state` is its final state or last finished step."""
    decisions, approval = ingestion.decisions, ingestion.decisions.approval
    return {
        "id": ingestion.id,
        "state": ingestion.state.value,
        "bucket": ingestion.landed.bucket,
        "key": ingestion.landed.key,
        "version": ingestion.landed.version,
        "size": ingestion.landed.size,
        "table": ingestion.table,
        "tables": list(ingestion.tables),
        "parts": [asdict(part) for part in ingestion.parts],
        "owner": ingestion.terms.owner,
        "rows": ingestion.audit.rows,
        "reason": asdict(ingestion.reason) if ingestion.reason else None,
        "check_counts": dict(ingestion.audit.check_counts),
        "checks": [dict(check) for check in ingestion.audit.checks],
        "branch": ingestion.branch,
        "attempt": ingestion.attempt,
        "job_run": ingestion.job_run,
        "is_shared": ingestion.is_shared,
        "base_hash": ingestion.base_hash,
        "audited_hash": ingestion.audited_hash,
        "merge_hash": ingestion.merge_hash,
        "contract_key": ingestion.terms.contract_key,
        "contract_version": ingestion.terms.contract_version,
        "report_key": ingestion.report_key,
        "on_duplicate": ingestion.terms.on_duplicate,
        "on_new_version": ingestion.terms.on_new_version,
        "duplicate_of": ingestion.audit.duplicate_of or None,
        "replaced": list(ingestion.replaced),
        "replaced_rows": ingestion.audit.replaced_rows,
        "updated_rows": ingestion.audit.updated_rows,
        "write_mode": ingestion.terms.write_mode,
        "superseded_by": ingestion.superseded_by or None,
        "despite": decisions.despite or None,
        "change": asdict(ingestion.change) if ingestion.change else None,
        "mends": asdict(ingestion.mends) if ingestion.mends else None,
        "alerted": ingestion.alerted,
        "discarded": decisions.discarded,
        "actions": [asdict(action) for action in decisions.actions],
        "approval": asdict(approval) if approval else None,
        "times": dict(ingestion.times),
    }


def with_report(ingestion: Ingestion, report: AuditReport | None) -> dict[str, Any]:
    """Return an ingestion with its last attempt's audit report, null if there is none."""
    document = json.loads(report.to_json()) if report else None
    return {**ingestion_json(ingestion), "report": document}


def text(document: Mapping[str, Any] | list[dict[str, Any]]) -> str:
    """Return a document as printable text, with terminal control characters escaped."""
    return escaped_json(json.dumps(document, indent=2, ensure_ascii=False))
