"""Batches over fakes: several tables by one commit, or not at all."""

import json
from dataclasses import replace

import pytest

from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.operations.reconcile.compare import reconciled
from functions.operations.reconcile.file_sums import End
from functions.operations.upkeep.expire import expire
from lakegate.audit.batch_report import together
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import OTHER_TABLE, RETURNS, TABLE, Known
from tests.fakes.job import ROWS, Script, errored, passed, rejected
from tests.fakes.promises import publishing
from tests.fakes.scenario import FIRST, Scenario

FILES = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}
KEY = "batches/monday/_manifest.json"
MANIFEST = json.dumps({"files": [{"key": "orders.parquet", "table": TABLE}]}).encode()


def rows(deployment: Scenario) -> dict[str, list[str]]:
    """Return the landed objects whose rows are on main, by table."""
    return {table: deployment.published_files(table) for table in (TABLE, OTHER_TABLE)}


def test_a_good_batch_is_published_by_one_commit(deployment: Scenario) -> None:
    """One commit publishes the files into their tables, and the branches are deleted."""
    batch = deployment.end_of(deployment.batch("monday", FILES))
    assert (batch.state, batch.audit.rows, batch.tables) == (
        State.PUBLISHED,
        2 * ROWS,
        (TABLE, OTHER_TABLE),
    )
    assert rows(deployment) == {
        TABLE: ["s3://landing/batches/monday/orders.parquet@v1"],
        OTHER_TABLE: ["s3://landing/batches/monday/returns.parquet@v1"],
    }
    assert [commit.hash for commit in publishing(deployment)] == [batch.merge_hash]
    assert deployment.catalog.branches("") == ["main"]
    assert deployment.alerts.posted == []


def test_another_tables_contract_is_no_batchs_concern(deployment: Scenario) -> None:
    """A contract that cannot be read stops the batches that bring files of its table alone."""
    monday = deployment.batch("monday", {"orders.parquet": TABLE})
    tuesday = deployment.batch("tuesday", {"returns.parquet": OTHER_TABLE})
    deployment.upload_contract(RETURNS.replace("integer", "intger"), OTHER_TABLE)
    fine, stopped = deployment.end_of(monday), deployment.end_of(tuesday)
    assert (fine.state, stopped.state) == (State.PUBLISHED, State.ERRORED)
    assert stopped.reason
    assert stopped.reason.code == "CONTRACT_INVALID"


def test_the_commit_names_files_tables_and_rows(deployment: Scenario) -> None:
    """Main's log names the files, tables and rows of the batch."""
    landed = deployment.end_of(deployment.batch("monday", FILES))
    (commit,) = publishing(deployment)
    assert commit.message == (
        "Publish 6 rows of 2 files of batch monday to shop.orders, shop.returns"
    )
    (one,) = merge_commit.published(commit)
    assert one.object == landed.landed.uri
    assert [(part.key, part.table, part.rows) for part in one.parts] == [
        ("orders.parquet", TABLE, ROWS),
        ("returns.parquet", OTHER_TABLE, ROWS),
    ]
    assert merge_commit.gains(commit) == {TABLE: ROWS, OTHER_TABLE: ROWS}


@pytest.mark.parametrize(
    ("script", "end"), [(rejected, "rejected CHECKS_FAILED"), (errored, "errored CORRUPT_FILE")]
)
def test_a_file_that_fails_keeps_all_of_its_batch_from_main(
    deployment: Scenario, script: Script, end: str
) -> None:
    """If one file fails, main stays unchanged, and one alert names the file."""
    batch = deployment.end_of(deployment.batch("monday", FILES, script))
    assert deployment.end(batch) == end
    assert deployment.message(batch).startswith("orders.parquet for shop.orders: ")
    assert rows(deployment) == {TABLE: [], OTHER_TABLE: []}
    (text,) = deployment.told()
    assert all(words in text for words in (batch.branch, "shop.returns", "batch monday"))
    assert ("orders.parquet: id.required" in text) is (script is rejected)


def test_a_file_in_a_batchs_folder_is_ignored_by_itself(deployment: Scenario) -> None:
    """Each file of the folder ends ignored, by a rule that names the batch."""
    file = deployment.ended("batches/monday/orders.parquet")
    assert deployment.end(file) == "ignored BATCH_MEMBER"
    assert deployment.message(file) == "its batch's _manifest.json brings it in"


def test_only_the_files_of_a_batch_are_listed(deployment: Scenario) -> None:
    """A folder may have a hundred thousand files that its manifest does not name."""
    for number in range(9):
        deployment.land(f"batches/monday/{number}.parquet")
    deployment.landing.listed = 0
    deployment.batch("monday", FILES)
    deployment.deliver()
    assert deployment.landing.listed == len(FILES)


@pytest.mark.parametrize(("name", "version"), [("monday", "v2"), ("tuesday", "v1")])
def test_a_new_manifest_is_another_batch(deployment: Scenario, name: str, version: str) -> None:
    """The same text put again, in any folder, publishes the files that are there now."""
    for each in ("monday", name):
        deployment.end_of(deployment.batch(each, FILES))
    assert len(publishing(deployment)) == 2
    second = f"s3://landing/batches/{name}/orders.parquet@{version}"
    assert rows(deployment)[TABLE] == ["s3://landing/batches/monday/orders.parquet@v1", second]
    assert deployment.told() == []


def test_a_file_that_came_after_its_manifest_was_not_there(deployment: Scenario) -> None:
    """A file that came after its manifest is published only by a replay."""
    manifest = deployment.land(KEY, MANIFEST)
    deployment.clock.pass_(60)
    deployment.ended("batches/monday/orders.parquet")
    assert deployment.end(manifest) == "errored FILE_NOT_THERE"
    assert "orders.parquet" in deployment.message(manifest)


def put_again(deployment: Scenario, manifest: Known) -> LandedObject:
    """Upload the same manifest again."""
    text, _ = deployment.landing.manifest(deployment.ingestion(manifest).landed)
    return deployment.land(KEY, text)


def test_a_second_manifest_of_the_same_files_is_held(deployment: Scenario) -> None:
    """The later of two manifests that name one version of a file is held."""
    first = deployment.end_of(deployment.batch("monday", FILES))
    held = deployment.end_of(put_again(deployment, first))
    assert first.state is State.PUBLISHED
    assert deployment.end(held) == "rejected LIKELY_DUPLICATE"
    assert len(deployment.published_files()) == 1


def test_a_held_duplicate_can_be_approved() -> None:
    """A batch that was held as a duplicate is published if that is approved."""
    deployment = Scenario()  # main then has its data files twice, which is what was approved
    first = deployment.end_of(deployment.batch("monday", FILES))
    held = deployment.end_of(put_again(deployment, first))
    deployment.publish_anyway(held)
    assert deployment.end_of(held).state is State.PUBLISHED


def test_of_two_manifests_the_one_that_waits_for_main_comes_first(deployment: Scenario) -> None:
    """An earlier manifest that is ingested late is held."""
    deployment.loses_events = True
    late = deployment.batch("monday", FILES)
    deployment.loses_events = False
    text, _ = deployment.landing.manifest(late)
    waits = deployment.run(KEY, text)
    deployment.fail("catalog.merge", times=5)
    deployment.deliver()
    assert deployment.states(waits) == [State.AUDITED]
    deployment.send_upload(late)
    deployment.settle()
    assert deployment.states(late, waits) == [State.REJECTED, State.PUBLISHED]


def corrected(deployment: Scenario) -> tuple[Ingestion, Ingestion]:
    """Return a rejected batch, and the batch of its corrected file and its other files."""
    first = deployment.end_of(deployment.batch("monday", FILES, rejected))
    deployment.land("batches/monday/orders.parquet", b"corrected")
    return first, deployment.end_of(put_again(deployment, first))


def test_a_correction_publishes_the_other_files_as_they_were(deployment: Scenario) -> None:
    """One corrected file and a new manifest publish the other files as they were."""
    _, second = corrected(deployment)
    assert second.state is State.PUBLISHED
    assert rows(deployment)[OTHER_TABLE] == ["s3://landing/batches/monday/returns.parquet@v1"]


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ([], "BAD_MANIFEST", "names no file"),
        ([{"key": "gone.parquet", "table": TABLE}], "FILE_NOT_THERE", "gone.parquet"),
        ([{"key": "orders.parquet", "table": "shop.nothing"}], "NO_CONTRACT", "shop.nothing"),
        ([{"key": "empty.parquet", "table": TABLE}], "EMPTY_OBJECT", "empty.parquet"),
    ],
)
def test_a_manifest_that_cannot_be_kept_ends_errored(
    deployment: Scenario, files: list[dict[str, str]], code: str, words: str
) -> None:
    """An invalid manifest ends errored with the reason, without a job and a change of main."""
    deployment.land("batches/monday/orders.parquet")
    deployment.land("batches/monday/empty.parquet", b"")
    manifest = json.dumps({"files": files}).encode()
    batch = deployment.ended(KEY, manifest)
    assert deployment.end(batch) == f"errored {code}"
    assert words in deployment.message(batch)
    assert deployment.jobs.runs() == []


@pytest.mark.parametrize(("folder", "ends"), [("monday", "published"), ("é" * 400, "errored")])
def test_a_job_run_can_take_all_names_of_a_batch(
    deployment: Scenario, folder: str, ends: str
) -> None:
    """Names that no argument of a job run can hold are refused before there is one."""
    files = {f"{number:0100}.parquet": TABLE for number in range(20)}
    batch = deployment.end_of(deployment.batch(folder, files))
    assert batch.state.value == ends
    assert batch.reason_code == ("" if ends == "published" else "TOO_LARGE")


@pytest.mark.parametrize("setting", ["onNewVersion: replace", "onDuplicate: hold"])
def test_settings_that_compare_files_refuse_batches(deployment: Scenario, setting: str) -> None:
    """A contract with settings that compare a file with earlier ones takes no file of a batch."""
    name, value = setting.split(": ")
    deployment.ask(**{name: value})
    batch = deployment.end_of(deployment.batch("monday", FILES))
    assert deployment.end(batch) == "errored NOT_IN_BATCH"
    assert name in deployment.message(batch)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [({}, "none"), ({"batches": "[batches/mon, batches/tuesday/]"}, "batches/mon, batches/tue")],
    ids=["by default", "from other manifests"],
)
def test_a_batch_brings_no_file_of_a_table_that_does_not_allow_it(
    deployment: Scenario, settings: dict[str, str], allowed: str
) -> None:
    """Without the owner's permission the batch ends errored, and no table gets any of its rows."""
    deployment.restrict_batches(**settings)
    batch = deployment.end_of(deployment.batch("sunday", FILES))
    assert deployment.end(batch) == "errored BATCH_NOT_ALLOWED"
    for words in (f"contract of {TABLE} ", f"begin with: {allowed}", "batches: allowed"):
        assert words in deployment.message(batch)
    assert rows(deployment) == {TABLE: [], OTHER_TABLE: []}
    assert deployment.jobs.runs() == []


def test_a_batch_whose_manifest_has_an_allowed_prefix_is_published(deployment: Scenario) -> None:
    """A contract may allow the batches of one producer alone."""
    deployment.restrict_batches(batches="[batches/mon]")
    landed = deployment.batch("monday", FILES)
    assert deployment.end_of(landed).state is State.PUBLISHED


def test_a_replay_publishes_a_batch_that_is_allowed_since(deployment: Scenario) -> None:
    """Once the owner allows it, a replay of the batch publishes it."""
    deployment.restrict_batches()
    landed = deployment.batch("monday", FILES)
    deployment.settle()
    deployment.restrict_batches(batches="allowed")
    deployment.replay(landed)
    assert deployment.end_of(landed).state is State.PUBLISHED


@pytest.mark.parametrize("files", [FILES, {"a.parquet": TABLE, "b.parquet": TABLE}])
def test_a_file_that_came_first_causes_no_job_run(
    deployment: Scenario, files: dict[str, str]
) -> None:
    """If main's table changed, the batch's files are registered again without another job run."""
    deployment.ended(FIRST)
    deployment.upload_contract(RETURNS, OTHER_TABLE)
    deployment.ended("shop/returns/first.parquet")
    landed = deployment.batch("monday", files)
    deployment.deliver()
    deployment.ended("shop/orders/second.parquet")
    batch = deployment.ingestion(landed)
    assert (batch.state, batch.attempt) == (State.PUBLISHED, 1)
    assert len(deployment.published_files()) == 2 + list(files.values()).count(TABLE)


def test_an_approved_batch_is_published_by_one_commit(deployment: Scenario) -> None:
    """An approved batch is published by one commit, with the name and the reason."""
    batch = deployment.end_of(deployment.batch("monday", FILES, rejected))
    deployment.publish_anyway(batch)
    ((one,),) = map(merge_commit.published, publishing(deployment))
    assert (one.approved_by, one.approved_because) == ("Ann", "it is known")
    assert all(rows(deployment).values())


def test_an_approval_doubles_no_file(deployment: Scenario) -> None:
    """A rejected batch cannot be published once a later manifest brought one of its files."""
    first, second = corrected(deployment)
    with pytest.raises(LakegateError, match=second.id) as refused:
        deployment.publish_anyway(first)
    assert refused.value.code == "LIKELY_DUPLICATE"


def without_rows(report: AuditReport) -> AuditReport:
    """Script a file with wrong columns, which is rejected before it is written."""
    return replace(rejected(report), audited_hash="", rows_written=0, files=())


def test_half_a_batch_cannot_be_published(deployment: Scenario) -> None:
    """If a file's rows are not on the branch, an approval does not publish the others."""
    landed = deployment.end_of(deployment.batch("monday", FILES, without_rows))
    with pytest.raises(LakegateError, match="before any row was written"):
        deployment.publish_anyway(landed)
    assert publishing(deployment) == []


def test_a_report_without_one_of_the_files_is_refused(deployment: Scenario) -> None:
    """A run whose report lacks one of two files publishes nothing."""
    batch = deployment.batch("monday", FILES)
    deployment.go()
    (key,) = deployment.lake.reports()
    report = deployment.lake.report(key)
    cut = together(batch, report.parts[:1])
    deployment.lake.put_text(key, cut.to_json().encode())
    deployment.settle()
    assert deployment.end(batch) == "errored FOREIGN_REPORT"


def test_a_replay_finds_the_file_that_was_missing(deployment: Scenario) -> None:
    """A manifest that came too early can be replayed; other files are taken as they were."""
    deployment.upload_contract(RETURNS, OTHER_TABLE)
    deployment.land("batches/monday/orders.parquet")
    listed = [{"key": key, "table": table} for key, table in FILES.items()]
    batch = deployment.ended(KEY, json.dumps({"files": listed}).encode())
    deployment.clock.pass_(60)
    deployment.land("batches/monday/orders.parquet", b"the next one's")
    deployment.land("batches/monday/returns.parquet")
    deployment.replay(batch)
    deployment.settle()
    assert [part.version for part in deployment.ingestion(batch).parts] == ["v1", "v1"]
    assert all(rows(deployment).values())


def test_a_replay_reads_the_versions_of_before(deployment: Scenario) -> None:
    """A replay takes the same versions, by current or by original contracts."""
    landed = deployment.end_of(deployment.batch("monday", FILES, rejected))
    deployment.land("batches/monday/orders.parquet", b"newer")
    deployment.script(landed, passed)
    deployment.replay(landed, original=True)
    deployment.settle()
    assert rows(deployment)[TABLE] == ["s3://landing/batches/monday/orders.parquet@v1"]


@pytest.mark.parametrize("expires", [True, False])
def test_a_discard_deletes_the_branch_of_a_batch(deployment: Scenario, expires: bool) -> None:
    """A discarded batch has no branch any more, and its expiry names all of its tables."""
    deployment.end_of(deployment.batch("sunday", FILES))
    landed = deployment.end_of(deployment.batch("monday", FILES, rejected))
    if expires:
        deployment.clock.pass_(31 * 24 * 3600)
        (outcome,) = expire(deployment.adapters, 30)
        assert outcome.table == f"{TABLE}, {OTHER_TABLE}"
    else:
        deployment.discard(landed)
    assert deployment.catalog.branches("ingest/") == []


def test_reconcile_counts_a_batch_in_each_of_its_tables(deployment: Scenario) -> None:
    """Each table's rows are those that the batch's commit names for it."""
    deployment.end_of(deployment.batch("monday", FILES))
    found = reconciled(deployment.adapters, OTHER_TABLE, thorough=True)
    assert found.problems == ()
    ((balance),) = found.balances
    assert (balance.table, balance.published) == (OTHER_TABLE, ROWS)
    assert found.ended(End.PUBLISHED) == (1, 2 * ROWS)
