"""What the commit on main says of the ingestion that it published."""

from functions.ingestion import Ingestion

INGESTION = "lakegate.ingestion"


def message(ingestion: Ingestion) -> str:
    """One line for people who read main's log."""
    name = ingestion.landed.key.rsplit("/", 1)[-1]
    return f"Publish {ingestion.rows:,} rows of {name} to {ingestion.table}"


def properties(ingestion: Ingestion) -> dict[str, str]:
    """What programs, and a rebuilt ledger, read in main's log."""
    return {
        INGESTION: ingestion.id,
        "lakegate.object": ingestion.landed.uri,
        "lakegate.object-version": ingestion.landed.version,
        "lakegate.table": ingestion.table,
        "lakegate.rows": str(ingestion.rows),
        "lakegate.report": ingestion.report_key,
        "lakegate.contract": f"{ingestion.contract_key}@{ingestion.contract_version}",
        "lakegate.job-run": ingestion.job_run,
        "lakegate.audited-hash": ingestion.audited_hash,
    }
