"""Output of `lakegate backfill`."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from access.files.backfill import Backfill, Handled, Progress, Step
from access.files.backfill import backfill as bring
from cli.files.backfill import count, report, requested
from functions.adapters.landing import Source
from functions.model.ingestion import State
from lakegate.errors import LakegateError
from tests.fakes.deployment import OTHER_TABLE, RETURNS, TABLE, Deployment
from tests.unit.cli.cli_examples import REJECTED


def _handled(step: Step, number: int = 0) -> Handled:
    source = Source("old", f"orders/{step.name}-{number}.csv", "etag", 5)
    return Handled(source, f"shop/orders/{step.name}-{number}.csv", step)


PROGRESS = Progress(
    steps=Counter({Step.PUBLISHED: 1, Step.TAKEN: 1, Step.COPIED: 1}),
    skipped=(_handled(Step.PUBLISHED), _handled(Step.TAKEN)),
    ended=Counter({State.PUBLISHED: 1, State.REJECTED: 1}),
    failed=(REJECTED,),
)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, whatever the width of the terminal."""
    return " ".join(capsys.readouterr().out.split())


def test_each_file_that_was_not_copied_is_shown_with_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What needs a decision is told apart from what needs none."""
    report(PROGRESS, as_json=False)
    printed = shown(capsys)
    address = "s3://old/orders/PUBLISHED-0.csv → shop/orders/PUBLISHED-0.csv"
    assert f"skipped, published before: {address}" in printed
    assert "did not land, key taken by another file: s3://old/orders/TAKEN-0.csv" in printed
    assert printed.count("TAKEN-0.csv") == 2


def test_each_file_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A name with a line end in it cannot begin a line of its own."""
    file = Handled(Source("old", "a\nb.csv", "etag", 5), "shop/orders/a\nb.csv", Step.TAKEN)
    report(Progress(skipped=(file,)), as_json=False)
    assert "s3://old/a␊b.csv → shop/orders/a␊b.csv\n" in capsys.readouterr().out


def test_many_skipped_files_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty are shown, and the way to see all."""
    many = tuple(_handled(Step.IGNORED, number) for number in range(25))
    report(replace(PROGRESS, skipped=many), as_json=False)
    printed = shown(capsys)
    assert printed.count("ignored by name:") == 20
    assert "5 more were skipped: --json lists all of them" in printed


def test_json_lists_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The document has every file that was not copied, its reason, and what failed."""
    many = tuple(_handled(Step.IGNORED, number) for number in range(25))
    report(replace(PROGRESS, skipped=(*PROGRESS.skipped, *many)), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert len(document["skipped"]) == 27
    assert document["skipped"][1] == {
        "source": "s3://old/orders/TAKEN-0.csv",
        "key": "shop/orders/TAKEN-0.csv",
        "reason": "key taken by another file",
    }
    assert (document["left"], document["ended"]) == (1, {"published": 1, "rejected": 1})
    assert document["steps"]["published before"] == 1
    assert [each["id"] for each in document["failed"]] == [REJECTED.id]


def test_a_dry_run_says_that_it_counts_what_came_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Files that a backfill has brought are still counted, and the line says so."""
    deployment, request = Deployment(), Backfill(TABLE, "old", "orders/", "shop/orders/history/")
    for name in ("a.csv", "_SUCCESS"):
        deployment.landing.put_elsewhere("old", f"orders/{name}", b"id\n1\n")
    *_, _ = bring(deployment.adapters, request, deployment.settle)
    count(deployment.adapters, request, as_json=False)
    printed = shown(capsys)
    assert "1 files, 0.0 MB, with those that came before; 1 ignored by name" in printed
    assert "s3://old/orders/a.csv → shop/orders/history/a.csv" in printed
    count(deployment.adapters, request, as_json=True)
    one = {"source": "s3://old/orders/a.csv", "key": "shop/orders/history/a.csv", "size": 5}
    assert json.loads(capsys.readouterr().out) == {"due": [one], "ignored": 1, "foreign": 0}


def test_only_options_of_its_own_are_advised() -> None:
    """Without a table the refusal names an option that `backfill` has; `--key` is of `drop`."""
    deployment = Deployment()
    deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
    with pytest.raises(LakegateError, match=f"Add `--table`; .*: {TABLE}, {OTHER_TABLE}$"):
        requested(deployment.adapters, "s3://old/a/", "", "", 1)


def test_an_invalid_contract_of_another_table_stops_no_backfill() -> None:
    """Only the contract of the table itself matters, as for every file that lands."""
    deployment = Deployment()
    deployment.lake.put_text("contracts/shop.other.yaml", b"no contract")
    assert requested(deployment.adapters, "s3://old/a/", TABLE, "", 1).target == "shop/orders/"


def test_no_file_lands_under_a_prefix_of_another_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder whose keys the contract of another table claims is left out, before and in a run."""
    deployment = Deployment()
    nested = "customProperties: [{property: landingPrefix, value: shop/orders/returns/}]\n"
    deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", (nested + RETURNS).encode())
    for name in ("a.csv", "returns/b.csv"):
        deployment.landing.put_elsewhere("old", f"orders/{name}", b"id\n1\n")
    request = requested(deployment.adapters, "s3://old/orders/", TABLE, "", 1)
    count(deployment.adapters, request, as_json=True)
    counted = json.loads(capsys.readouterr().out)
    assert [each["key"] for each in counted["due"]] == ["shop/orders/a.csv"]
    assert (counted["ignored"], counted["foreign"]) == (0, 1)
    count(deployment.adapters, request, as_json=False)
    assert "1 files," in (printed := shown(capsys))
    assert "1 key of another table" in printed
    *_, last = bring(deployment.adapters, request, deployment.settle)
    assert [(each.key, each.step) for each in last.left] == [
        ("shop/orders/returns/b.csv", Step.FOREIGN)
    ]
    assert [each.key for each in deployment.landing.landed()] == ["shop/orders/a.csv"]
