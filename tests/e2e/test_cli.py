"""The `lakegate` command, used by a person and by a program on the running stack."""

import json
from pathlib import Path

import boto3
import pytest
from pyiceberg.catalog.rest import RestCatalog
from typer.testing import Result

from access.deployment.checkout import ROOT
from functions.model import steps
from tests.e2e.conftest import Gate, contract, document, lakegate
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

TABLE = "cli.orders"
GOOD, BAD = b"id,amount\n1,10.5\n2,20\n", b"id,amount\n3,30\n4,400\n"


@pytest.fixture(scope="module")
def dropped(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Drop a good and a bad file with the command, and await each."""
    gate.put_contract(contract(TABLE, "csv", "shared"))
    directory = tmp_path_factory.mktemp("files")
    results = {}
    for name, body in {"good.csv": GOOD, "bad.csv": BAD}.items():
        Path(directory / name).write_bytes(body)
        results[name] = lakegate("drop", str(directory / name), "--table", TABLE, "--wait")
        wait_for_rest(gate, results[name].stdout.split()[0])
    return results


def wait_for_rest(gate: Gate, ingestion: str) -> None:
    """Wait until an ended ingestion does not change any more: its results are then final."""

    def at_rest() -> bool:
        found = gate.adapters.ledger.get(ingestion)
        return not (steps.unfinished(found) or steps.needs_recording(found))

    eventually(at_rest, PATIENCE, f"{ingestion} is not at rest")


def test_drop_waits_for_the_verdict(dropped: dict[str, Result]) -> None:
    """The exit code is the verdict; stderr shows the progress, and stdout the id."""
    good, bad = dropped["good.csv"], dropped["bad.csv"]

    assert (good.exit_code, bad.exit_code) == (0, 3)
    assert "good.csv: published 2 rows" in good.stderr
    assert "bad.csv: rejected, 1 of " in bad.stderr
    landing = "s3://lakegate-local-landing-000000000000-us-east-1"
    assert good.stdout.split()[1] == f"{landing}/cli/orders/good.csv"


def test_runs_and_show_tell_the_same_story(dropped: dict[str, Result]) -> None:
    """`runs` lists the newest first; `show` of a shortened id adds the report to the same facts."""
    newest, oldest = document("runs", "--table", TABLE)
    shown = document("show", newest["id"][:10])

    assert (newest["state"], oldest["state"]) == ("rejected", "published")
    assert newest["id"] == dropped["bad.csv"].stdout.split()[0]
    assert newest["reason"]["code"] == "CHECKS_FAILED"
    assert {name: shown[name] for name in newest} == newest
    failed = [check for check in shown["report"]["checks"] if check["status"] == "fail"]
    assert [check["columns"] for check in failed] == [["amount"]]
    assert [each["id"] for each in document("runs", "--table", TABLE, "--state", "rejected")] == [
        newest["id"]
    ]
    assert "rows that break" in lakegate("show", newest["id"]).stdout


def test_what_did_not_fail_has_no_buttons(dropped: dict[str, Result]) -> None:
    """Pressing a button of a published file is refused with the reason."""
    pressed = lakegate("slack", "press", dropped["good.csv"].stdout.split()[0], "replay")

    assert pressed.exit_code == 1
    assert "good.csv did not fail" in pressed.stderr
    assert "NO_BUTTONS" in pressed.stderr


def test_a_new_contract_is_tried_on_what_landed(
    gate: Gate, dropped: dict[str, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page's commands, bounds that only the bad file meets change verdicts, and no state."""
    page = (ROOT / "docs" / "contracts.md").read_text().replace("shop.orders", TABLE)
    test, push = (line.split()[1:] for line in page.splitlines() if line.endswith("--since 30d"))
    before = document("runs", "--table", TABLE), document("contract", "list"), main(gate)
    bounds = contract(TABLE, "csv").replace("minimum: 0, maximum: 100", "minimum: 25, maximum: 400")
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / f"{TABLE}.yaml").write_text(bounds)
    monkeypatch.chdir(tmp_path)

    said, told = lakegate(*test, "--json"), lakegate(*push)

    assert (said.exit_code, told.exit_code) == (3, 3), said.stderr + told.stderr
    found = {each["name"]: each for each in json.loads(said.stdout)["files"]}
    good, bad = (found[f"cli/orders/{name}.csv"] for name in ("good", "bad"))
    assert (good["recorded"], good["verdict"], good["rows_before"]) == ("passed", "rejected", 2)
    assert good["failed"] == ["amount.invalidValues"]
    assert (bad["recorded"], bad["verdict"], bad["rows"]) == ("rejected", "passed", 2)
    assert f"contract {TABLE} would be put in force" in told.stderr
    assert "2 files, 1 rejected → passed (2 rows), 1 passed → rejected (2 rows)" in told.stdout
    assert before == (document("runs", "--table", TABLE), document("contract", "list"), main(gate))


def main(gate: Gate) -> str:
    return gate.adapters.catalog.head("main")


def test_query_reads_main_and_the_rejected_branch(dropped: dict[str, Result]) -> None:
    """Main has only the good rows; the branch also has the bad ones, even in joins with itself."""
    branch = document("runs", "--table", TABLE, "--state", "rejected")[0]["branch"]
    ids = f"SELECT id FROM {TABLE} ORDER BY id"
    pairs = f"SELECT count(*) AS n FROM {TABLE} a JOIN {TABLE} b USING (id)"

    assert document("query", ids) == [{"id": 1}, {"id": 2}]
    assert document("query", ids, "--ref", branch) == [{"id": n} for n in (1, 2, 3, 4)]
    assert document("query", pairs) == [{"n": 2}]
    assert document("query", f"SELECT id FROM {TABLE} WHERE id > 9") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT * FROM cli.nothing"], "main has no table cli.nothing; its tables are: "),
        ([f"SELECT nothing FROM {TABLE}"], 'column "nothing" not found'),
        (["SELEC 1"], "syntax error"),
        ([f"DROP TABLE {TABLE}"], "only a single SELECT"),
        (["SELECT 1; SELECT 2"], "only a single SELECT"),
        ([f"SELECT * FROM {TABLE}", "--ref", "ingest/none"], "there is no branch ingest/none"),
    ],
)
def test_a_question_that_cannot_be_asked_is_explained(
    dropped: dict[str, Result], arguments: list[str], said: str
) -> None:
    """An invalid query is explained in a sentence, and no result is printed."""
    answer = lakegate("query", *arguments)

    assert (answer.exit_code, answer.stdout) == (1, "")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_tables_their_contracts_and_commits_are_listed(dropped: dict[str, Result]) -> None:
    """The table is listed with its rows and its contract, and its one commit in its log."""
    assert [each["rows"] for each in document("tables") if each["table"] == TABLE] == [2]
    listed = {each["table"]: each for each in document("contract", "list")}
    assert listed[TABLE]["prefix"] == "cli/orders/"
    (commit,) = document("log", TABLE)
    assert (commit["rows"], commit["message"]) == (2, f"Publish 2 rows of good.csv to {TABLE}")
    assert lakegate("query", f"SELECT id FROM {TABLE} ORDER BY id", "--csv").stdout == "id\n1\n2\n"


def test_the_local_slack_can_be_read(dropped: dict[str, Result]) -> None:
    """The alert is listed with its title, and shown with its buttons."""
    (bad,) = document("runs", "--waiting", "--table", TABLE)
    title = f"{TABLE}: bad.csv rejected, {bad['reason']['message']}; main unchanged"

    def is_told() -> bool:
        return title in [each["text"] for each in document("slack", "list")]

    eventually(is_told, PATIENCE, "the alert is not in Slack")
    assert "[Publish anyway]" in lakegate("slack", "show", bad["id"]).stdout


def test_status_is_enough_to_join_in(gate: Gate, dropped: dict[str, Result]) -> None:
    """Any S3 and any Iceberg client can use the lake with the facts of `status --json`."""
    status = document("status")

    s3 = boto3.client(
        "s3",
        endpoint_url=status["s3"],
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    catalog = RestCatalog("any", uri=f"{status['iceberg']}/main", token=status["reader_token"])

    landed = s3.list_objects_v2(Bucket=status["landing_bucket"], Prefix="cli/")["Contents"]
    assert {each["Key"] for each in landed} == {"cli/orders/good.csv", "cli/orders/bad.csv"}
    assert s3.head_bucket(Bucket=status["lake_bucket"])
    assert catalog.table_exists(TABLE)
    assert status["nessie"] == gate.stack.nessie
    assert set(status["health"].values()) == {"up"}
    assert status["counts"]["published"] >= 1
    assert status["counts"]["rejected"] >= 1
