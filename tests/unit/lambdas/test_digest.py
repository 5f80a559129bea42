"""The weekly digest shows results and pending decisions on one screen."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.digest import review
from functions.model.ingestion import State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.messages.alert import Kind
from functions.notifications.blocks import MOST_BLOCKS, SECTION
from functions.notifications.email import words
from functions.operations.week import Week
from functions.operations.weekly_digest import digest
from infra.local.slack.blocks import problems
from tests.fakes.deployment import TABLE
from tests.fakes.job import errored, rejected
from tests.fakes.scenario import Scenario

UNTIL = datetime.fromisoformat("2026-03-09T07:00:00+00:00")
FAILED = IngestionSummary(
    id="a" * 32,
    name="a.csv",
    table="shop.orders",
    state=State.REJECTED,
    rows=10,
    landed_at="2026-03-03T12:00:00.000+00:00",
    ended_at="2026-03-03T12:01:00.000+00:00",
    reason_code="CHECKS_FAILED",
    branch="ingest/shop.orders/a",
)
PUBLISHED = replace(FAILED, state=State.PUBLISHED, reason_code="", rows=1200, branch="")


def said(landed: list[IngestionSummary], waiting: list[IngestionSummary], page: str = "") -> str:
    """Return the digest's full text."""
    return "\n".join(words(digest(week(landed), waiting, 30, page).blocks))


def week(landed: Iterable[IngestionSummary]) -> Week:
    """Return the week in which these landed."""
    counted = Week(UNTIL)
    for each in landed:
        counted.add(each)
    return counted


def test_it_counts_files_rows_and_causes() -> None:
    """Files, rows and failures are counted in total, by table and by cause."""
    other = replace(FAILED, table="", state=State.ERRORED, reason_code="NO_CONTRACT", rows=0)
    flying = replace(PUBLISHED, state=State.SUBMITTED, ended_at="")
    text = said([PUBLISHED, PUBLISHED, FAILED, other, flying], [])
    for part in (
        "Week in review: 2026-03-02 to 2026-03-09",
        "5 files landed: 2 published, 1 rejected, 1 errored, 1 in flight. 2,400 rows published.",
        "`shop.orders` 4 files, 2,400 rows, 1 failed",
        "`(no contract)` 1 file, 0 rows, 1 failed",
        "`CHECKS_FAILED` 1 file",
        "`NO_CONTRACT` 1 file",
        "Nothing waits for a decision.",
    ):
        assert part in text


def test_a_busy_week_is_not_kept() -> None:
    """What was counted is not held, so that a week of any size has room in the function."""
    counted, brief = Week(UNTIL), replace(PUBLISHED)
    held = ref(brief)
    counted.add(brief)
    del brief
    assert (counted.files, held()) == (1, None)


def test_it_counts_one_row() -> None:
    """One row is not called rows."""
    assert "1 published. 1 row published." in said([replace(PUBLISHED, rows=1)], [])


def test_it_says_what_was_decided() -> None:
    """Discarded, superseded and approved files are counted as such."""
    approved = replace(PUBLISHED, approved_by="Ada")
    settled = [replace(FAILED, discarded=True), replace(FAILED, superseded_by="b" * 32)]
    text = said([PUBLISHED, approved, FAILED, *settled], [])
    assert "2 published (1 approved), 1 rejected, 1 discarded, 1 superseded." in text


def test_a_batch_counts_with_its_tables() -> None:
    """A batch counts as one file of each of its tables, with the rows of each."""
    parts = {"shop.orders": 7, "shop.returns": 2}
    batch = replace(PUBLISHED, name="batch 1", table="batch", rows=9, parts=parts)
    text = said([PUBLISHED, batch], [replace(batch, state=State.REJECTED)])
    assert "`shop.orders` 2 files, 1,207 rows" in text
    assert "`shop.returns` 1 file, 2 rows" in text
    assert "batch 1 `shop.orders, shop.returns`, rejected" in text
    assert "`batch`" not in text


def test_an_end_without_a_time_keeps_its_branch() -> None:
    """For an ingestion restored without the time of its failure no date is shown."""
    text = said([], [replace(FAILED, ended_at="")])
    assert "rejected, with its branch" in text


def test_it_names_what_waits_and_until_when() -> None:
    """Each open branch is named with its day of expiry; long lists are counted."""
    text = said([], [FAILED] * 12)
    assert "No file landed." in text
    assert "Waiting for a decision: 12 files" in text
    line = "a.csv `shop.orders`, rejected 2026-03-03, its branch expires 2026-04-02"
    assert text.count(line) == 10
    assert "… and 2 more" in text


def test_it_names_batches_that_nobody_completed() -> None:
    """Batches without a manifest for a day are named; completed ones are not."""
    member = replace(PUBLISHED, table="", state=State.IGNORED, reason_code="BATCH_MEMBER", rows=0)
    whole = replace(PUBLISHED, name="batch 2026-03-01", table="batch", batch="2026-03-01")
    landed = [
        *(whole, replace(member, batch="2026-03-01"), PUBLISHED),
        *(replace(member, batch="2026-03-02"), replace(member, batch="2026-03-02")),
        replace(member, batch="2026-03-02", reason_code="IGNORED_KEY"),
        replace(member, batch="2026-03-09", landed_at="2026-03-09T06:00:00.000+00:00"),
    ]
    text = said(landed, [])
    assert "Not ingested: batches without a manifest" in text
    assert "`2026-03-02` 2 files" in text
    assert not any(part in text for part in ("`2026-03-01`", "`2026-03-09`", "(no contract)"))


LANDED = "2026-03-03T12:00:00.500+00:00"
MEMBER = replace(FAILED, state=State.IGNORED, reason_code="BATCH_MEMBER", batch="hourly", table="")
MANIFEST = replace(PUBLISHED, batch="hourly", table="batch", landed_at=LANDED)


@pytest.mark.parametrize(
    ("landed_at", "files"),
    [
        ("2026-03-03T12:00:00.400+00:00", 0),
        ("2026-03-03T12:00:00.900+00:00", 0),
        ("2026-03-03T12:00:01.000+00:00", 1),
    ],
)
def test_a_manifest_is_for_what_landed_before_it(landed_at: str, files: int) -> None:
    """In a reused folder, files after the last manifest are named."""
    earlier = replace(MANIFEST, landed_at="2026-03-03T10:00:00.000+00:00")
    member = replace(MEMBER, landed_at=landed_at)
    assert sum(week([MANIFEST, earlier, member]).incomplete().values()) == files


def test_a_replayed_manifest_is_for_what_landed_before_that() -> None:
    """Files that a manifest's replay included are not named."""
    member = replace(MEMBER, landed_at="2026-03-03T13:00:00.000+00:00")
    replayed = replace(MANIFEST, replayed_at="2026-03-03T13:01:00.000+00:00")
    assert week([MANIFEST, member]).incomplete() == {"hourly": 1}
    assert week([replayed, member]).incomplete() == {}


def test_it_leads_to_the_quality_page() -> None:
    """With a quality page the digest links to it."""
    assert "<https://page|The quality page>" in said([], [], "https://page")
    assert "<" not in said([], [])


@given(st.text(max_size=4000), st.text(max_size=4000), st.text(max_size=4000))
def test_no_name_breaks_it(name: str, table: str, cause: str) -> None:
    """For any names the digest is within Slack's limits and has no foreign link."""
    odd = replace(FAILED, name=name, table=table, reason_code=cause)
    members = [replace(MEMBER, batch=each) for each in (name, *map(str, range(30)))]
    notice = digest(week([*[odd] * 30, *members]), [odd] * 30, 30)
    assert problems([dict(block) for block in notice.blocks]) == []
    assert len(notice.blocks) <= MOST_BLOCKS
    for text in (notice.text, *words(notice.blocks)):
        assert len(text) <= SECTION
        assert "<" not in text


@pytest.mark.parametrize("channel", ["", "#weekly"])
def test_a_week_is_reported_once(channel: str) -> None:
    """The digest is posted once, even if the schedule runs twice; and whenever somebody asks."""
    deployment = Scenario()
    deployment.land("shop/orders/a.parquet")
    deployment.land("shop/orders/b.parquet", script=rejected)
    deployment.ended("shop/orders/c.parquet", script=errored)
    for until in ("2026-03-01T13:00:00Z", "2026-03-01T13:00:00Z", ""):
        assert review(deployment.adapters, channel, until) == 3
    digests = [(to, alert) for to, alert in deployment.alerts.posted if alert.kind is Kind.DIGEST]
    (to, alert), (_, asked) = digests
    assert (to, asked.text) == (channel, alert.text)
    assert "3 files landed: 1 published, 1 rejected, 1 errored." in alert.text
    assert "Waiting for a decision: 2 files" in str(alert.blocks)


def test_it_is_sent_when_somebody_asks_for_it() -> None:
    """A digest that is asked for on another day is posted besides that of its week's Monday."""
    deployment = Scenario()
    for _ in range(3):
        review(deployment.adapters, "")
        deployment.clock.pass_(86_400)
    assert len(deployment.alerts.posted) == 3


def test_files_whose_manifest_was_forgotten_are_reported_though_others_had_one() -> None:
    """A reused folder without a second manifest is named."""
    deployment = Scenario()
    deployment.batch("hourly", {"orders.parquet": TABLE})
    deployment.clock.pass_(3600)
    deployment.ended("batches/hourly/orders.parquet")
    deployment.clock.pass_(2 * 86_400)
    review(deployment.adapters, "")
    assert "`hourly` 1 file" in str(deployment.alerts.posted[-1][1].blocks)


def test_each_batch_without_a_manifest_is_reported_once() -> None:
    """Each batch without a manifest is named by exactly one digest."""
    deployment = Scenario()
    deployment.ended("batches/early/a.parquet")
    deployment.clock.pass_(6 * 86_400)
    deployment.ended("batches/late/a.parquet")
    digests = []
    for _ in range(3):
        review(deployment.adapters, "")
        digests.append(str(deployment.alerts.posted[-1][1].blocks))
        deployment.clock.pass_(7 * 86_400)
    assert [["early" in each, "late" in each] for each in digests] == [
        [True, False],
        [False, True],
        [False, False],
    ]
