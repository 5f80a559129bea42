import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from rich.console import Console

from cli.drop import chosen, exit_code, explain, put, put_batch, show_progress, stopped, wait_for
from cli.follow import TrackedIngestion, dropped
from functions.model.ingestion import Ingestion
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.landing import ingestion_id
from lakegate.report import AuditReport
from tests.fakes.deployment import ORDERS, Deployment
from tests.fakes.examples import REPORT
from tests.fakes.faults import Fault
from tests.unit.cli.cli_examples import ERRORED, IGNORED, PUBLISHED, QUEUED, REJECTED

_ORDERS = parse(ORDERS, "orders")
_BASKETS = parse(ORDERS.replace("shop.orders", "shop.baskets"), "baskets")


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ([PUBLISHED], 0),
        ([REJECTED], 3),
        ([ERRORED], 4),
        ([IGNORED], 5),
        ([PUBLISHED, REJECTED, PUBLISHED], 3),
        ([ERRORED, REJECTED], 4),
    ],
)
def test_the_exit_code_is_that_of_the_worst_state(ended: list[Ingestion], code: int) -> None:
    """The exit code distinguishes the final states; with several files the worst counts."""
    assert exit_code([TrackedIngestion(ingestion) for ingestion in ended]) == code


def test_what_was_put_is_what_the_pipeline_will_find(tmp_path: Path) -> None:
    """The id printed on upload is the id of the ingestion."""
    deployment = Deployment()
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")

    item = put(deployment.adapters, tmp_path / "a.csv", "shop/orders/ü +.csv")

    (landed,) = deployment.landing.landed()
    assert (landed.key, landed.size) == ("shop/orders/ü +.csv", 5)
    assert item.ingestion.id == ingestion_id(landed)


def test_the_contract_is_the_only_one_or_that_of_the_table() -> None:
    """With one contract in force no table has to be named; of several the table selects one."""
    assert chosen([_ORDERS], "") is _ORDERS
    assert chosen([_ORDERS, _BASKETS], "shop.baskets") is _BASKETS


@pytest.mark.parametrize(
    ("contracts", "table", "said"),
    [
        ([], "", "none"),
        ([_ORDERS, _BASKETS], "", "shop.baskets, shop.orders"),
        ([_ORDERS], "shop.baskets", "Tables with a contract: shop.orders"),
    ],
)
def test_an_ambiguous_target_is_refused(contracts: list[Contract], table: str, said: str) -> None:
    """An ambiguous target raises an error that lists the tables."""
    with pytest.raises(LakegateError, match="WHICH_KEY") as caught:
        chosen(contracts, table)

    assert said in caught.value.message


def test_a_manifests_files_are_uploaded_before_it(tmp_path: Path) -> None:
    """The files of a batch land before its manifest, so that it is published at once."""
    deployment = Deployment()
    folder = tmp_path / "monday"
    folder.mkdir()
    for name in ("orders.parquet", "more.parquet"):
        (folder / name).write_bytes(name.encode())
    listed = [{"key": f"{name}.parquet", "table": "shop.orders"} for name in ("orders", "more")]
    (folder / "_manifest.json").write_text(json.dumps({"files": listed}))

    item = put_batch(deployment.adapters, folder / "_manifest.json")

    times = {landed.key: landed.landed_at for landed in deployment.landing.landed()}
    manifest = times.pop("batches/monday/_manifest.json")
    assert set(times) == {"batches/monday/orders.parquet", "batches/monday/more.parquet"}
    assert all(time <= manifest for time in times.values())
    deployment.send_upload(item.ingestion.landed)
    deployment.deliver()
    assert [part.key for part in deployment.ledger.get(item.ingestion.id).parts] == [
        "orders.parquet",
        "more.parquet",
    ]


def test_a_manifest_whose_file_is_not_here_uploads_nothing(tmp_path: Path) -> None:
    """A manifest with a missing file raises an error before any upload."""
    deployment = Deployment()
    manifest = tmp_path / "_manifest.json"
    manifest.write_text('{"files": [{"key": "gone.csv", "table": "shop.orders"}]}')

    with pytest.raises(LakegateError, match=r"cannot read .*gone\.csv: .*\nNothing was uploaded"):
        put_batch(deployment.adapters, manifest)

    assert list(deployment.landing.landed()) == []


def test_each_step_takes_one_line_however_the_load_changes() -> None:
    """Beside a terminal, a file that waits takes one line, with the number when it began."""
    said = io.StringIO()
    with show_progress(Console(file=said, width=200)) as show:
        for load in ("about 3 files wait", "about 2 files wait"):
            show([TrackedIngestion(QUEUED, load=load)])
        show([TrackedIngestion(PUBLISHED)])
    first, second = said.getvalue().splitlines()
    assert first.endswith("waits for a shared run; about 3 files wait")
    assert "published 1,842 rows" in second


def remarks(ingestion: Ingestion, report: AuditReport | None = None) -> str:
    """Return what is said about an ingestion that was waited for."""
    deployment = Deployment()
    if report:
        deployment.lake.put_report(ingestion.report_key, report.to_json())
    said = io.StringIO()
    explain(Console(file=said, width=200), deployment.adapters, [TrackedIngestion(ingestion)])
    return said.getvalue()


def test_what_is_remarkable_about_a_published_file_is_said() -> None:
    """Warnings, rows in quarantine and a likely duplicate are named after the wait."""
    report = replace(REPORT, rows_rejected=1200)
    said = remarks(replace(PUBLISHED, duplicate_of="d" * 32), report)
    assert "März.csv: warning, few_late: expected 0 rows, found 7 rows" in said
    assert "März.csv: 1,200 rows are in quarantine" in said
    assert "März.csv: likely a duplicate: dddddddddddd brought the same before" in said
    assert said.endswith("Details: `lakegate show 0123456789ab`\n")


def test_an_unremarkable_file_is_not_remarked() -> None:
    """A file without warnings needs no further line, and a rejected one has its reason only."""
    assert remarks(replace(PUBLISHED, checks=())) == ""
    assert remarks(REJECTED).splitlines()[0].endswith("1 of 3 checks failed: total.range")


def test_after_a_wait_was_stopped_the_way_on_is_named() -> None:
    """Ctrl-C during a wait prints the command for each ingestion."""
    assert "lakegate show 0123456789ab" in stopped([TrackedIngestion(QUEUED)])


def test_an_interrupted_wait_leaves_the_work_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """After Ctrl-C a wait names the way on, and exits as shells expect; the file is ingested."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    deployment = Deployment()
    landed = deployment.land("shop/orders/a.parquet")
    deployment.deliver()
    deployment.journal.strike("ledger.get", Fault(interrupt))
    with pytest.raises(typer.Exit) as ending:
        wait_for(deployment.adapters, [dropped(landed)], 60)
    assert ending.value.exit_code == 130
    assert f"lakegate show {ingestion_id(landed)[:12]}" in capsys.readouterr().err
    deployment.settle()
    assert deployment.ingestion(landed).merge_hash
