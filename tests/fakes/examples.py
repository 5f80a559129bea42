"""An ingestion that was rejected, and its audit report."""

from dataclasses import replace

from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion, State
from lakegate.audit.diagnosis import Rename, WrongColumns
from lakegate.audit.report import AuditReport, CheckResult, DataFile, Reason, Status, Step, Verdict
from lakegate.job.landing import LandedObject

LANDED = LandedObject("landing", "shop/orders/a.csv", "v1", "e1", 10)
WHY = Reason("CHECKS_FAILED", "1 of 2 checks failed: carrier")
BRANCH = "ingest/shop.orders/a-csv-aaaaaaaaaaaa"
INGESTION = Ingestion(
    id="a" * 32,
    landed=LANDED,
    state=State.REJECTED,
    terms=ContractTerms(table="shop.orders"),
    branch=BRANCH,
    base_hash="b" * 64,
    audited_hash="f" * 64,
    audit=AuditOutcome(rows=842),
    reason=WHY,
)
FAILED = CheckResult(
    id="carrier",
    metric="invalidValues",
    columns=("carrier", "flight"),
    severity="error",
    status=Status.FAIL,
    expected="0 rows",
    found="2 rows",
    message="two characters",
    samples=({"carrier": "Zürich", "flight": None}, {"carrier": "x2", "flight": "7"}),
)
PASSED = CheckResult("fine", "rowCount", (), "error", Status.PASS, "at least 1 row", "842 rows")
REPORT = AuditReport(
    ingestion=INGESTION.id,
    attempt=1,
    verdict=Verdict.REJECTED,
    reason=WHY,
    table="shop.orders",
    branch=BRANCH,
    base_hash="b" * 64,
    audited_hash="f" * 64,
    source=LANDED,
    format="csv",
    contract_id="shop-orders",
    contract_version="1.0.0",
    contract_sha256="d" * 64,
    rows_written=842,
    checks=(PASSED, FAILED),
    started_at="2026-03-01T12:00:00.000+00:00",
    finished_at="2026-03-01T12:00:09.000+00:00",
    steps=(Step("append", 1.5),),
    engine={"spark": "4.1.1"},
    files=(DataFile("s3://lake/warehouse/shop/orders/data/1.parquet", 842, 9_000),),
)

# A CSV file without two of the contract's columns: nothing was written.
WRONG = WrongColumns(
    expected=3,
    missing=("carrier", "flight"),
    unexpected=("flght",),
    renames=(Rename("flight", "flght", 0.91),),
    causes=("the header looks to be in row 2: remove the rows above it",),
)
WRONG_FILE = replace(
    REPORT,
    reason=Reason("MISSING_COLUMN", WRONG.sentence),
    audited_hash="",
    rows_written=0,
    files=(),
    wrong_columns=WRONG,
    checks=tuple(
        CheckResult(
            f"file.columns.{name}",
            "file",
            (name,),
            "error",
            Status.FAIL,
            "the contract's columns, with compatible types",
            f"column {name!r} is missing",
            is_told=True,
        )
        for name in WRONG.missing
    ),
)
