"""Batches over fakes: several tables by one commit, or not at all."""

import json
from dataclasses import replace

import pytest

from functions.model import merge_commit
from functions.model.ingestion import State
from functions.operations.expire import expire
from functions.operations.failed import discard, publish_anyway, replay
from functions.operations.reconcile import reconciled
from functions.operations.reconciliation import End
from lakegate.batch import together
from lakegate.errors import LakegateError
from lakegate.landing import ingestion_id
from lakegate.report import AuditReport
from tests.fakes.deployment import OTHER_TABLE, RETURNS, TABLE, Deployment
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import ROWS, crashed_once, errored, passed, rejected
from tests.fakes.promises import check_promises, publishing

FILES = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}
MANIFEST = json.dumps({"files": [{"key": "orders.parquet", "table": TABLE}]}).encode()


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where nothing has landed."""
    return Deployment()


def rows(deployment: Deployment) -> dict[str, list[str]]:
    """Return the landed objects whose rows are on main, by table."""
    return {table: deployment.published_files(table) for table in (TABLE, OTHER_TABLE)}


def test_a_good_batch_is_published_by_one_commit(deployment: Deployment) -> None:
    """One commit publishes the files into their tables, and the branches are deleted."""
    landed = deployment.batch("monday", FILES)
    deployment.settle()
    check_promises(deployment)
    batch = deployment.ingestion(landed)
    assert (batch.state, batch.rows, batch.tables) == (
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


def test_the_commit_names_files_tables_and_rows(deployment: Deployment) -> None:
    """Main's log names the files, tables and rows of the batch."""
    landed = deployment.batch("monday", FILES)
    deployment.settle()
    (commit,) = publishing(deployment)
    assert commit.message == (
        "Publish 6 rows of 2 files of batch monday to shop.orders, shop.returns"
    )
    (one,) = merge_commit.published(commit)
    assert one.object == landed.uri
    assert [(part.key, part.table, part.rows) for part in one.parts] == [
        ("orders.parquet", TABLE, ROWS),
        ("returns.parquet", OTHER_TABLE, ROWS),
    ]
    assert merge_commit.gains(commit) == {TABLE: ROWS, OTHER_TABLE: ROWS}


def test_a_file_that_fails_keeps_all_of_its_batch_from_main(deployment: Deployment) -> None:
    """If one file is rejected, main stays unchanged, and one alert names file and branch."""
    landed = deployment.batch("monday", FILES, rejected)
    deployment.settle()
    check_promises(deployment)
    batch = deployment.ingestion(landed)
    assert batch.state is State.REJECTED
    assert batch.reason is not None
    assert batch.reason.message.startswith("orders.parquet for shop.orders: ")
    assert rows(deployment) == {TABLE: [], OTHER_TABLE: []}
    ((_, alert),) = deployment.alerts.posted
    for words in (batch.branch, "orders.parquet: id.required", "shop.returns", "batch monday"):
        assert words in str(alert.blocks)


def test_a_file_that_cannot_be_read_ends_its_batch(deployment: Deployment) -> None:
    """The batch is errored with that file's reason, and main stays unchanged."""
    landed = deployment.batch("monday", FILES, errored)
    deployment.settle()
    check_promises(deployment)
    batch = deployment.ingestion(landed)
    assert batch.reason is not None
    assert (batch.state, batch.reason.code) == (State.ERRORED, "CORRUPT_FILE")


def test_a_file_in_a_batchs_folder_is_ignored_by_itself(deployment: Deployment) -> None:
    """Each file of the folder ends ignored, by a rule that names the batch."""
    file = deployment.land("batches/monday/orders.parquet")
    deployment.settle()
    reason = deployment.ingestion(file).reason
    assert reason is not None
    assert (reason.code, reason.message) == (
        "BATCH_MEMBER",
        "its batch's _manifest.json brings it in",
    )


def test_a_new_manifest_is_another_batch(deployment: Deployment) -> None:
    """The same manifest put again publishes its files again, in their current versions."""
    deployment.batch("monday", FILES)
    deployment.settle()
    deployment.batch("monday", FILES)
    deployment.settle()
    check_promises(deployment)
    assert len(publishing(deployment)) == 2
    assert rows(deployment)[TABLE] == [
        f"s3://landing/batches/monday/orders.parquet@v{n}" for n in (1, 2)
    ]


def test_equal_manifests_are_no_duplicates(deployment: Deployment) -> None:
    """Manifests with the same text in two folders are not duplicates."""
    deployment.batch("monday", FILES)
    deployment.settle()
    deployment.batch("tuesday", FILES)
    deployment.settle()
    assert len(publishing(deployment)) == 2
    assert deployment.alerts.posted == []


def test_versions_are_those_that_were_there(deployment: Deployment) -> None:
    """A file that is replaced after its manifest was ingested is published in its old version.

    This also holds if the job runs again.
    """
    deployment.batch("monday", FILES, crashed_once)
    deployment.deliver()
    deployment.land("batches/monday/orders.parquet", b"newer")
    deployment.settle()
    assert rows(deployment)[TABLE] == ["s3://landing/batches/monday/orders.parquet@v1"]


@pytest.mark.parametrize("first", ["earlier", "later"])
def test_each_manifest_brings_what_was_there_when_it_landed(
    deployment: Deployment, first: str
) -> None:
    """A manifest takes the files of when it landed, in any order of ingestion."""
    deployment.loses_events = first == "later"
    deployment.batch("hourly", FILES)
    deployment.loses_events = False
    deployment.clock.pass_(3600)
    deployment.batch("hourly", FILES)
    deployment.settle()
    check_promises(deployment)
    for table, name in zip((TABLE, OTHER_TABLE), FILES, strict=True):
        landed = f"s3://landing/batches/hourly/{name}"
        assert rows(deployment)[table] == [f"{landed}@v1", f"{landed}@v2"]


def test_a_file_that_came_after_its_manifest_was_not_there(deployment: Deployment) -> None:
    """A file that came after its manifest is published only by a replay."""
    manifest = deployment.land("batches/monday/_manifest.json", MANIFEST)
    deployment.clock.pass_(60)
    deployment.land("batches/monday/orders.parquet")
    deployment.settle()
    check_promises(deployment)
    reason = deployment.ingestion(manifest).reason
    assert reason is not None
    assert reason.code == "FILE_NOT_THERE"
    assert "orders.parquet" in reason.message


def test_a_second_manifest_of_the_same_files_is_held(deployment: Deployment) -> None:
    """The later of two manifests that name one version of a file is held."""
    first = deployment.batch("monday", FILES)
    text, _ = deployment.landing.manifest(first)
    second = deployment.land("batches/monday/_manifest.json", text)
    deployment.settle()
    check_promises(deployment)
    held = deployment.ingestion(second)
    assert deployment.ingestion(first).state is State.PUBLISHED
    assert held.reason is not None
    assert (held.state, held.reason.code) == (State.REJECTED, "LIKELY_DUPLICATE")
    assert len(deployment.published_files()) == 1


def test_of_two_manifests_the_one_that_waits_for_main_comes_first(deployment: Deployment) -> None:
    """An earlier manifest that is ingested late is held."""
    deployment.loses_events = True
    late = deployment.batch("monday", FILES)
    deployment.loses_events = False
    text, _ = deployment.landing.manifest(late)
    waits = deployment.land("batches/monday/_manifest.json", text)
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=5))
    deployment.deliver()
    assert deployment.ingestion(waits).state is State.AUDITED
    deployment.send_upload(late)
    deployment.settle()
    check_promises(deployment)
    states = [deployment.ingestion(each).state for each in (late, waits)]
    assert states == [State.REJECTED, State.PUBLISHED]


def test_after_a_rejected_batch_the_other_files_need_not_be_uploaded_again(
    deployment: Deployment,
) -> None:
    """One corrected file and a new manifest publish the other files as they were."""
    first = deployment.batch("monday", FILES, rejected)
    deployment.settle()
    deployment.land("batches/monday/orders.parquet", b"corrected")
    second = deployment.land("batches/monday/_manifest.json", deployment.landing.manifest(first)[0])
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(second).state is State.PUBLISHED
    assert rows(deployment)[OTHER_TABLE] == ["s3://landing/batches/monday/returns.parquet@v1"]


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ([], "BAD_MANIFEST", "names no file"),
        ([{"key": "gone.parquet", "table": TABLE}], "FILE_NOT_THERE", "gone.parquet"),
        ([{"key": "orders.parquet", "table": "shop.nothing"}], "NO_CONTRACT", "shop.nothing"),
        ([{"key": "../orders.parquet", "table": TABLE}], "BAD_MANIFEST", "out of its folder"),
        ([{"key": "empty.parquet", "table": TABLE}], "EMPTY_OBJECT", "empty.parquet"),
        ([{"key": "orders.parquet", "table": TABLE}] * 2, "BAD_MANIFEST", "more than once"),
    ],
)
def test_a_manifest_that_cannot_be_kept_ends_errored(
    deployment: Deployment, files: list[dict[str, str]], code: str, words: str
) -> None:
    """An invalid manifest ends errored with the reason, without a job and a change of main."""
    deployment.land("batches/monday/orders.parquet")
    deployment.land("batches/monday/empty.parquet", b"")
    manifest = json.dumps({"files": files}).encode()
    landed = deployment.land("batches/monday/_manifest.json", manifest)
    deployment.settle()
    check_promises(deployment)
    batch = deployment.ingestion(landed)
    assert batch.reason is not None
    assert (batch.state, batch.reason.code) == (State.ERRORED, code)
    assert words in batch.reason.message
    assert deployment.jobs.runs() == []


@pytest.mark.parametrize(
    "setting", [{"onNewVersion": "replace"}, {"onDuplicate": "hold"}], ids=lambda s: next(iter(s))
)
def test_what_a_batch_cannot_keep_is_refused(
    deployment: Deployment, setting: dict[str, str]
) -> None:
    """A contract with settings that compare a file with earlier ones takes no file of a batch."""
    deployment.ask(**setting)
    landed = deployment.batch("monday", FILES)
    deployment.settle()
    reason = deployment.ingestion(landed).reason
    assert reason is not None
    assert reason.code == "NOT_IN_BATCH"
    assert next(iter(setting)) in reason.message


def test_a_file_that_came_first_is_no_hindrance(deployment: Deployment) -> None:
    """If main's table changed, the batch's files are registered again without another job run."""
    deployment.land("shop/orders/first.parquet")
    deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
    deployment.land("shop/returns/first.parquet")
    deployment.settle()
    landed = deployment.batch("monday", FILES)
    deployment.deliver()
    deployment.land("shop/orders/second.parquet")
    deployment.settle()
    check_promises(deployment)
    batch = deployment.ingestion(landed)
    assert (batch.state, batch.attempt) == (State.PUBLISHED, 1)
    assert len(deployment.published_files()) == 3


def test_two_batches_of_the_same_tables_are_both_published(deployment: Deployment) -> None:
    """Both batches are published, each by one commit of its own."""
    deployment.batch("sunday", FILES)
    deployment.settle()
    for day in ("monday", "tuesday"):
        deployment.batch(day, FILES)
    deployment.settle()
    check_promises(deployment)
    assert len(publishing(deployment)) == 3
    assert len(deployment.published_files()) == 3


def test_several_files_of_one_table(deployment: Deployment) -> None:
    """Several files of one table are registered again together."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    landed = deployment.batch("monday", {"a.parquet": TABLE, "b.parquet": TABLE})
    deployment.deliver()
    deployment.land("shop/orders/second.parquet")
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).attempt == 1
    assert len(deployment.published_files()) == 4


def test_with_checks_of_the_whole_table_the_job_runs_again(deployment: Deployment) -> None:
    """With checks of the whole table, the whole job runs again on a fresh branch."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    landed = deployment.batch("monday", FILES)
    deployment.deliver()
    deployment.land_with("shop/orders/second.parquet", "2")
    deployment.settle()
    check_promises(deployment)
    batch = deployment.ingestion(landed)
    assert batch.state is State.PUBLISHED


def test_an_approved_batch_is_published_by_one_commit(deployment: Deployment) -> None:
    """An approved batch is published by one commit, with the name and the reason."""
    landed = deployment.batch("monday", FILES, rejected)
    deployment.settle()
    publish_anyway(deployment.adapters, deployment.ingestion(landed), "Ann", "it is right")
    deployment.settle()
    check_promises(deployment)
    (commit,) = publishing(deployment)
    (one,) = merge_commit.published(commit)
    assert (one.approved_by, one.approved_because) == ("Ann", "it is right")
    assert all(rows(deployment).values())


def test_an_approval_doubles_no_file(deployment: Deployment) -> None:
    """A rejected batch cannot be published once a later manifest brought one of its files."""
    first = deployment.batch("monday", FILES, rejected)
    deployment.settle()
    deployment.land("batches/monday/orders.parquet", b"corrected")
    second = deployment.land("batches/monday/_manifest.json", deployment.landing.manifest(first)[0])
    deployment.settle()
    with pytest.raises(LakegateError, match=ingestion_id(second)) as refused:
        publish_anyway(deployment.adapters, deployment.ingestion(first), "Ann", "it is right")
    assert refused.value.code == "LIKELY_DUPLICATE"
    deployment.settle()
    check_promises(deployment)


def test_a_held_duplicate_can_be_approved(deployment: Deployment) -> None:
    """A batch that was held as a duplicate is published if that is approved."""
    first = deployment.batch("monday", FILES)
    deployment.settle()
    second = deployment.land("batches/monday/_manifest.json", deployment.landing.manifest(first)[0])
    deployment.settle()
    publish_anyway(deployment.adapters, deployment.ingestion(second), "Ann", "it is right")
    deployment.settle()
    assert deployment.ingestion(second).state is State.PUBLISHED


def without_rows(report: AuditReport) -> AuditReport:
    """Script a file with wrong columns, which is rejected before it is written."""
    return replace(rejected(report), audited_hash="", rows_written=0, files=())


def test_half_a_batch_cannot_be_published(deployment: Deployment) -> None:
    """If a file's rows are not on the branch, an approval does not publish the others."""
    landed = deployment.batch("monday", FILES, without_rows)
    deployment.settle()
    with pytest.raises(LakegateError, match="before any row was written"):
        publish_anyway(deployment.adapters, deployment.ingestion(landed), "Ann", "never mind")
    assert publishing(deployment) == []


def test_a_report_without_one_of_the_files_is_refused(deployment: Deployment) -> None:
    """A run whose report lacks one of two files publishes nothing."""
    landed = deployment.batch("monday", FILES)
    deployment.deliver()
    told = deployment.jobs.spec(deployment.ingestion(landed).job_run)
    deployment.run_jobs()
    report = deployment.lake.report(told.report_key)
    cut = together(told.landed, report.parts[:1])
    deployment.lake.put_text(told.report_key, cut.to_json().encode())
    deployment.settle()
    reason = deployment.ingestion(landed).reason
    assert reason is not None
    assert reason.code == "FOREIGN_REPORT"
    assert publishing(deployment) == []


def test_a_replay_finds_the_file_that_was_missing(deployment: Deployment) -> None:
    """A manifest that came too early can be replayed once its files are there."""
    landed = deployment.land("batches/monday/_manifest.json", MANIFEST)
    deployment.settle()
    deployment.land("batches/monday/orders.parquet")
    replay(deployment.adapters, deployment.ingestion(landed))
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).state is State.PUBLISHED


def test_a_replay_takes_the_other_files_as_they_were(deployment: Deployment) -> None:
    """A replay takes the versions that were there when the manifest landed."""
    deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
    deployment.land("batches/monday/orders.parquet")
    listed = [{"key": key, "table": table} for key, table in FILES.items()]
    text = json.dumps({"files": listed}).encode()
    landed = deployment.land("batches/monday/_manifest.json", text)
    deployment.settle()
    deployment.clock.pass_(60)
    deployment.land("batches/monday/orders.parquet", b"the next one's")
    deployment.land("batches/monday/returns.parquet")
    replay(deployment.adapters, deployment.ingestion(landed))
    deployment.settle()
    check_promises(deployment)
    assert [part.version for part in deployment.ingestion(landed).parts] == ["v1", "v1"]
    assert all(rows(deployment).values())


def test_a_replay_reads_the_versions_of_before(deployment: Deployment) -> None:
    """A replay takes the same versions, by current or by original contracts."""
    landed = deployment.batch("monday", FILES, rejected)
    deployment.settle()
    deployment.land("batches/monday/orders.parquet", b"newer")
    deployment.script(landed, passed)
    replay(deployment.adapters, deployment.ingestion(landed), original=True)
    deployment.settle()
    check_promises(deployment)
    assert rows(deployment)[TABLE] == ["s3://landing/batches/monday/orders.parquet@v1"]


@pytest.mark.parametrize("expires", [True, False])
def test_a_discard_deletes_data_files_of_all_tables(deployment: Deployment, expires: bool) -> None:
    """A discard deletes the branch and its data files of each table, and nothing else."""
    deployment.batch("sunday", FILES)
    deployment.settle()
    landed = deployment.batch("monday", FILES, rejected)
    deployment.settle()
    if expires:
        deployment.clock.pass_(31 * 24 * 3600)
        (outcome,) = expire(deployment.adapters, 30)
        assert outcome.table == f"{TABLE}, {OTHER_TABLE}"
    else:
        discard(deployment.adapters, deployment.ingestion(landed))
    check_promises(deployment)
    gone = [key for key in deployment.lake.deleted if "/data/" in key]
    assert len(gone) == 2
    assert all("batches/monday/" in key for key in gone)
    assert deployment.catalog.branches("ingest/") == []


def test_reconcile_counts_a_batch_in_each_of_its_tables(deployment: Deployment) -> None:
    """Each table's rows are those that the batch's commit names for it."""
    deployment.batch("monday", FILES)
    deployment.settle()
    found = reconciled(deployment.adapters, OTHER_TABLE, thorough=True)
    assert found.problems == ()
    ((balance),) = found.balances
    assert (balance.table, balance.published) == (OTHER_TABLE, ROWS)
    assert found.ended(End.PUBLISHED) == (1, 2 * ROWS)
