"""`lakegate inspect` with rows in memory and the in-memory deployment."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest

from access.evidence.failing_rows import Finding, Inspection, Question, inspection
from access.tables.rows import Evidence
from cli.ingestions.inspect import document, page
from functions.model.ingestion import Ingestion
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import AuditReport, CheckResult, Status
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.job.change import Effect
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.examples import WRONG, WRONG_FILE
from tests.fakes.job import Script, crashed, passed, rejected
from tests.unit.cli.shown import shown

CONTRACT = """\
kind: DataContract
apiVersion: v3.1.0
id: shop-orders
version: 2.0.0
{samples}
schema:
  - name: shop.orders
    quality: [{{id: enough, metric: rowCount, mustBeGreaterThan: 9}}]
    properties:
      - {{name: id, logicalType: integer, required: true, unique: true}}
      - {{name: email, logicalType: string, classification: {secrecy}}}
      - name: total
        logicalType: number
        logicalTypeOptions: {{minimum: 0}}
"""
_NO_SAMPLES = "customProperties: [{property: allowSamples, value: false}]"
ROWS = pa.table(
    {
        "id": pa.array([1, None, 1, 4, 1, None], pa.int64()),
        "email": ["a@x", "b@x", None, "d@x", "e@x", "f@x"],
        "total": [1.5, float("nan"), -2.0, 0.0, None, 3.25],
    }
)


@dataclass(frozen=True)
class ArrowRows:
    """Rows in memory, in two files that are read two rows at a time."""

    table: pa.Table = field(default_factory=lambda: ROWS)
    files: tuple[str, ...] = ("s3://lake/one.parquet", "s3://lake/two.parquet")

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        return self.table.select(columns).schema

    def batches(self, file: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        half = self.table.select(columns).slice(4 * file, 4 if file == 0 else None)
        return iter(half.to_batches(max_chunksize=2))


@dataclass(frozen=True)
class Shop:
    """A deployment with a rejected file, whose contract has changed since."""

    deployment: Deployment
    landed: LandedObject
    contract: Contract
    rows: ArrowRows = field(default_factory=ArrowRows)

    @property
    def ingestion(self) -> Ingestion:
        return self.deployment.ingestion(self.landed)

    def inspect(self, check: str = "", limit: int = 20, *, reveal: bool = False) -> Inspection:
        question = Question(check, limit, reveal)
        return inspection(self.deployment.adapters, self.ingestion, question, self._evidence)

    def finding(self, check: str, *, reveal: bool = False) -> Finding:
        (found,) = self.inspect(check, reveal=reveal).findings
        return found

    @contextmanager
    def _evidence(self, report: AuditReport) -> Iterator[Evidence]:
        assert (report.branch, report.table) == (self.ingestion.branch, TABLE)
        with duckdb.connect() as connection:
            yield Evidence(connection, self.rows)


def shop(
    samples: str = "",
    secrecy: str = "public",
    told: CheckResult | None = None,
    *,
    unmerged: bool = False,
    effect: Effect | None = None,
    samples_of: Mapping[str, tuple[Mapping[str, str | None], ...]] = MappingProxyType({}),
    **found: Any,
) -> Shop:
    """Return the shop with given report values, else with those of the branch."""
    deployment = Deployment()
    text = CONTRACT.format(samples=samples, secrecy=secrecy)
    contract = parse(text, "orders")
    key = deployment.lake.put_contract(contract, text)
    true = {"id.nullValues": 2, "id.duplicateValues": 2, "total.invalidValues": 2, "enough": 6}
    results = tuple(
        CheckResult(
            check.id,
            check.metric.value,
            check.columns,
            check.severity.value,
            Status.FAIL,
            check.expect.wording,
            found.get(check.id.replace(".", "_")) or check.expect.found(true[check.id], 6),
            samples=samples_of.get(check.id, ()),
        )
        for check in contract.checks
    )

    def script(report: AuditReport) -> AuditReport:
        changed = rejected(report)
        implied = (told, *_IMPLIED[1:]) if told else _IMPLIED
        hash_ = "" if unmerged else changed.audited_hash
        judged = replace(changed, checks=(*results, *implied), audited_hash=hash_)
        judged = replace(judged, effect=effect, files=() if effect else judged.files)
        return replace(judged, rows_written=6, rows_unreadable=9)

    landed = deployment.land("shop/orders/a.csv", script=script)
    deployment.settle()
    stricter = text.replace("minimum: 0", "minimum: 1000").replace("required: true, ", "")
    deployment.lake.put_text(key, stricter.encode())
    return Shop(deployment, landed, contract)


_IMPLIED = (
    CheckResult(
        "file.rows_readable",
        "file",
        (),
        "error",
        Status.FAIL,
        "every row has all its cells",
        "1 of 6 rows could not be read",
        samples=({"row": "x,y"},),
    ),
    CheckResult("file.columns", "file", (), "error", Status.PASS, "the columns", "these"),
)


def addresses(finding: Finding) -> list[tuple[str, int]]:
    return [(row["_file"][-11:], row["_pos"]) for row in finding.rows]


def ended(script: Script = passed) -> tuple[Deployment, Ingestion]:
    """Return a deployment with one ended ingestion."""
    deployment = Deployment()
    landed = deployment.land("shop/orders/a.csv", script=script)
    deployment.settle()
    return deployment, deployment.ingestion(landed)


def no_rows(report: AuditReport) -> Any:
    return nullcontext(cast("Evidence", SimpleNamespace(files=())))


def test_a_check_of_the_whole_table_is_not_about_the_rows_alone() -> None:
    """A check of the whole table is not evaluated on the file's rows alone."""
    deployment = Deployment()
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    landed = deployment.land_with("shop/orders/second.parquet", "1")
    deployment.settle()
    found = inspection(deployment.adapters, deployment.ingestion(landed), Question(), no_rows)
    (finding,) = found.findings
    assert (finding.count, finding.on_branch) == (None, "")
    assert "with the table on main" in finding.notes[0]


def test_each_failed_check_shows_its_rows_with_their_addresses() -> None:
    """Rows have data file, position and all values as text, the check's column first."""
    found = shop().inspect()

    assert [finding.result.id for finding in found.findings] == [
        "id.nullValues",
        "id.duplicateValues",
        "total.invalidValues",
        "enough",
        "file.rows_readable",
    ]
    assert found.files == ArrowRows().files
    assert found.findings[2].rows == (
        {"_file": found.files[0], "_pos": 1, "total": "nan", "id": None, "email": "b@x"},
        {"_file": found.files[0], "_pos": 2, "total": "-2.0", "id": "1", "email": None},
    )
    assert all(finding.agrees for finding in found.findings)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("id.nullValues", [("one.parquet", 1), ("two.parquet", 1)]),
        ("id.duplicateValues", [("one.parquet", 0), ("one.parquet", 2), ("two.parquet", 0)]),
    ],
)
def test_the_addresses_of_the_rows_are_shown(check: str, expected: list[tuple[str, int]]) -> None:
    """Positions restart with each file; of rows with one key all are shown, the first uncounted."""
    finding = shop().finding(check)
    assert (addresses(finding), finding.count) == (expected, 2)


def test_rows_have_the_places_that_the_report_knows() -> None:
    """Rows of which the report knows the line come first, and with it; others are still shown."""
    known = {"_place": "line 7", "_file": ArrowRows().files[1], "_pos": "1", "id": None}
    given = shop(samples_of={"id.nullValues": (known,)})
    finding = given.finding("id.nullValues", reveal=True)
    assert [row.get("_place") for row in finding.rows] == ["line 7", None]
    assert "place" in shown(page(given.inspect("id.nullValues")))
    assert "_pos" not in shown(page(given.inspect("id.nullValues")))


def test_hidden_rows_have_their_places() -> None:
    """Where the contract forbids samples, the report's places are shown, and no value."""
    known = {"_place": "line 7", "_file": ArrowRows().files[1], "_pos": "1", "id": "(hidden)"}
    given = shop(_NO_SAMPLES, samples_of={"id.nullValues": (known,)})
    assert given.finding("id.nullValues").rows == (known,)


def test_no_more_rows_than_asked_for() -> None:
    """A limit bounds the rows, not the count, and the output shows both."""
    found = shop().inspect("id.nullValues", limit=1)

    assert (found.findings[0].count, len(found.findings[0].rows)) == (2, 1)
    assert "1 of 2 rows are shown" in shown(page(found))


def test_a_check_about_no_single_row_says_expected_and_found() -> None:
    """A row count shows expected and found values, and no rows."""
    found = shop().inspect("enough")

    assert (found.findings[0].count, found.findings[0].rows) == (None, ())
    assert "enough: 6 rows (the contract allows more than 9)" in shown(page(found))


def test_rows_that_could_not_be_read_are_the_reports() -> None:
    """Unparseable rows are shown from the report, as the branch has only nulls."""
    finding = shop().finding("file.rows_readable")

    assert finding.rows == ({"row": "x,y"},)
    assert "as they stand in the file" in finding.notes[0]


def test_bad_cells_are_the_reports() -> None:
    """Cells that could not be read are shown from the report, and hidden if they are so by now."""
    cells = (
        BadCell("line 4", "id", "x", "not a whole number").sample,
        BadCell("line 5", "email", "a@x", "not a text").sample,
        BadCell("line 6", "", "1,a@x", "2 cells, but the header has 3").sample,
    )
    for secrecy, values in (
        ("public", ["x", "a@x", "1,a@x"]),
        ("secret", ["x", *["(hidden)"] * 2]),
    ):
        told = replace(_IMPLIED[0], counted=9, samples=cells)
        made = shop(secrecy=secrecy, told=told)
        finding = made.finding(told.id)
        assert [row["value"] for row in finding.rows] == values
        assert [row["place"] for row in finding.rows] == ["line 4", "line 5", "line 6"]
        assert "--show-rows" in finding.notes[0]


def test_rows_that_were_left_out_are_looked_up_in_quarantine() -> None:
    """Quarantined rows come from main's quarantine table, or from the report before that."""
    left_out = replace(_IMPLIED[0], counted=3)
    deployment, now = ended(
        lambda report: replace(rejected(report), checks=(left_out,), rows_unreadable=3)
    )
    recorded: list[str] = []

    def quarantined(report: AuditReport, check: str, limit: int) -> list[str]:
        asked = report.ingestion, report.attempt, check
        assert asked == (now.id, 1, "file.rows_readable")
        return recorded[:limit]

    for more, rows in (((), ("x,y",)), (("x,y", "z"), ("x,y", "z"))):
        recorded += more
        found = inspection(deployment.adapters, now, Question(), no_rows, quarantined)
        (finding,) = found.findings
        assert finding.rows == tuple({"row": row} for row in rows)
        assert finding.notes == (
            "as they stand in the file: unparseable rows are not on the branch, but in quarantine",
        )
        assert "of 3 rows are shown" in shown(page(found))


def test_any_check_can_be_asked_for() -> None:
    """A named check is shown even if it passed; an unknown one raises an error."""
    assert shop().finding("file.columns").result.status is Status.PASS
    with pytest.raises(
        LakegateError, match=r"(?s)UNKNOWN_CHECK.*nothing.*id\.nullValues, id\.dupl"
    ):
        shop().inspect("nothing")


@pytest.mark.parametrize(
    ("check", "there"), [("total_invalidValues", "2 rows"), ("enough", "6 rows")]
)
def test_a_count_other_than_the_reports_is_reported(check: str, there: str) -> None:
    """A difference between branch and report is shown in text and JSON."""
    told: dict[str, Any] = {check: "7 rows"}
    found = shop(**told).inspect(check.replace("_", "."))

    assert f"the branch has {there}, not what the audit found" in shown(page(found))
    assert document(found)["checks"][0]["agrees"] is False


def test_hidden_rows_are_shown_on_demand_only() -> None:
    """Without allowSamples only the count is shown, unless the rows are requested."""
    closed = shop(_NO_SAMPLES)
    found = closed.inspect("id.nullValues")

    assert (found.findings[0].count, found.findings[0].rows) == (2, ())
    assert "b@x" not in str(document(found))
    assert "--show-rows shows them" in shown(page(found))
    assert len(closed.finding("id.nullValues", reveal=True).rows) == 2


def test_confidential_columns_are_shown_on_demand_alone() -> None:
    """Values of columns that the contract in force hides are hidden, unless requested."""
    closed, older = shop(secrecy="confidential"), shop()
    stricter = CONTRACT.format(samples="", secrecy="confidential")
    older.deployment.lake.put_text(older.ingestion.terms.contract_key, stricter.encode())
    for each in (closed, older):
        hidden = each.finding("total.invalidValues")
        assert [row["email"] for row in hidden.rows] == ["(hidden)", "(hidden)"]
    assert "--show-rows" in hidden.notes[0]
    revealed = closed.finding("total.invalidValues", reveal=True)
    assert [row["email"] for row in revealed.rows] == ["b@x", None]
    assert revealed.notes == ()


def test_an_unknown_contract_is_reported() -> None:
    """A contract lost with the ledger raises an error with the remedy."""
    open_ = shop()
    known = open_.ingestion
    open_.deployment.ledger.save(
        replace(known, terms=replace(known.terms, contract_key="", contract_version=""))
    )
    with pytest.raises(LakegateError, match=f"(?s)UNKNOWN_CONTRACT.*lakegate replay {known.id}"):
        open_.inspect()


def test_a_file_that_was_not_written_has_no_rows() -> None:
    """Without rows on a branch, expected and found values are shown and nothing is opened."""
    deployment, now = ended(
        lambda report: replace(rejected(report), audited_hash="", rows_written=0)
    )
    found = inspection(deployment.adapters, now, Question(), _nothing_to_open)
    assert "id.required: 1 row nothing was written" in shown(page(found))


def test_rows_that_could_not_be_merged_are_those_of_the_report() -> None:
    """Of an upsert whose keys break a check the report's rows are shown, without hidden values."""
    samples = {"id.nullValues": ({"_place": "line 3", "id": None, "email": "b@x"},)}
    kept = shop(secrecy="confidential", samples_of=samples, unmerged=True)
    nulls, doubled, *_ = kept.inspect().findings
    assert nulls.rows == ({"_place": "line 3", "id": None, "email": "(hidden)"},)
    text = shown(page(kept.inspect()))
    assert "nothing was written" not in text
    assert "line 3 null (hidden) the file's rows could not be merged" in text
    assert doubled.notes[0].startswith("the file's rows could not be merged")
    assert shop(unmerged=True).finding("id.nullValues").notes == doubled.notes


def test_an_upsert_is_not_compared_with_the_table_that_it_was_merged_into() -> None:
    """Rows of a file that no data file names are the report's: others are beside them."""
    samples = {"id.nullValues": ({"_place": "line 3", "id": None},)}
    merged = shop(samples_of=samples, effect=Effect(9, 14, 5, 0), id_nullValues="1 row")
    nulls, *_ = merged.inspect().findings
    assert nulls.rows == ({"_place": "line 3", "id": None},)
    assert merged.inspect().files == ()
    text = shown(page(merged.inspect()))
    assert "line 3 null on the branch the file's rows are among those of the table" in text
    assert "bug" not in text


def test_a_wrong_file_is_one_sentence() -> None:
    """Of a file with wrong columns the reason is shown once, in place of a check for each."""
    deployment, now = ended(lambda report: replace(
        rejected(report), **{name: getattr(WRONG_FILE, name) for name in _OF_WRONG}
    ))  # fmt: skip
    found = inspection(deployment.adapters, now, Question(), _nothing_to_open)
    text = shown(page(found))
    assert f"{WRONG.sentence} (MISSING_COLUMN); nothing was written" in text
    assert text.count("carrier") == 1
    assert document(found)["reason"]["message"] == WRONG.sentence


def test_without_failed_checks_there_is_nothing_to_see() -> None:
    """A file that passed has no findings, and its deleted branch is not opened."""
    deployment, now = ended()
    found = inspection(deployment.adapters, now, Question(), _nothing_to_open)
    assert found.findings == ()


def test_without_a_report_another_command_is_named() -> None:
    """An ingestion without a report raises an error that names another command."""
    deployment, now = ended(crashed)
    with pytest.raises(LakegateError, match=f"(?s)NO_REPORT.*lakegate show {now.id}"):
        inspection(deployment.adapters, now, Question(), _nothing_to_open)


def test_one_data_file_is_named_once() -> None:
    """A single data file is named above the table; several are a column."""
    one = replace(shop(), rows=ArrowRows(ROWS.slice(0, 4), ("s3://lake/one.parquet",)))

    assert shown(page(one.inspect("total.invalidValues"))).count("one.parquet") == 1
    assert shown(page(shop().inspect("total.invalidValues"))).count("one.parquet") == 3


def test_rows_that_cannot_be_read_are_reported() -> None:
    """Data that duckdb cannot read raises a LakegateError."""
    broken = pa.StringArray.from_buffers(1, *pa.array([b"\xff\xfe"]).buffers()[1:])
    table = pa.table({"id": pa.array([None], pa.int64()), "email": broken, "total": [1.0]})
    with pytest.raises(LakegateError, match="UNREADABLE_ROWS"):
        replace(shop(), rows=ArrowRows(table)).inspect("id.nullValues")


_OF_WRONG = ("reason", "audited_hash", "rows_written", "files", "checks", "wrong_columns")


def _nothing_to_open(report: AuditReport) -> Any:
    raise AssertionError(f"{report.branch} was opened")
