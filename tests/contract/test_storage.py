"""The two buckets behave alike in memory and on S3."""

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from moto.s3.models import s3_backends

from functions.adapters.landing import Landing, LostPosition
from functions.adapters.s3 import Lake, Missing, Overwritten
from functions.model.notes.checkpoint import Checkpoint, TableCount
from lakegate.audit.drift import Baselines, Series, Value
from lakegate.audit.report import to_lines
from lakegate.contract.model import ContractInvalid, parse
from lakegate.errors import Permanent, Transient
from lakegate.job.change import Change
from lakegate.job.landing import ingestion_id
from lakegate.job.upkeep import Comparison, Fingerprint
from lakegate.limits import Limits
from tests.contract.aws import ACCOUNT
from tests.contract.conftest import Servers
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import ORDERS, RETURNS
from tests.fakes.examples import REPORT
from tests.fakes.storage import FakeLake, FakeLanding

LIMITS = Limits(largest_contract=10_000, largest_report=20_000)
ITEMS = ORDERS.replace("shop.orders", "shop.items")


@dataclass(frozen=True)
class Buckets:
    """The adapters, and functions to put a contract, delete a landed object, and wait.

    `other` is a landing bucket of others, into which `land_there` puts an object.
    """

    landing: Landing | FakeLanding
    lake: Lake | FakeLake
    put_text: Callable[[str, bytes], object]
    delete: Callable[[str], object]
    wait: Callable[[float], object]
    other: str
    land_there: Callable[[str, bytes], object]


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """Yield S3 in this process."""
    with mock_aws():
        yield boto3.client("s3", **ACCOUNT)


@pytest.fixture(params=["in memory", "S3"])
def buckets(request: pytest.FixtureRequest, s3: Any) -> Buckets:
    """Return two empty buckets that keep versions."""
    if request.param == "in memory":
        lake, clock = FakeLake(limits=LIMITS), FakeClock()
        fake = FakeLanding(clock)
        there = partial(fake.land_in, "other")
        return Buckets(fake, lake, lake.put_text, fake.delete, clock.pass_, "other", there)
    landing, name, other = bucket(s3), bucket(s3), bucket(s3)
    return Buckets(
        Landing(s3, landing, other),
        Lake(s3, name, limits=LIMITS),
        lambda key, body: s3.put_object(Bucket=name, Key=key, Body=body),
        lambda key: s3.delete_object(Bucket=landing, Key=key),
        partial(aged, landing),
        other,
        lambda key, body: s3.put_object(Bucket=other, Key=key, Body=body),
    )


def test_files_land_in_buckets_of_others_as_well(buckets: Buckets, tmp_path: Path) -> None:
    """All buckets are listed, page by page; one key in two of them is two landed objects."""
    own = buckets.landing.put("a.csv", b"own")
    buckets.land_there("a.csv", b"theirs")
    buckets.land_there("b.csv", b"more")
    found = {(each.bucket, each.key) for each in buckets.landing.landed()}
    assert found == {(own.bucket, "a.csv"), (buckets.other, "a.csv"), (buckets.other, "b.csv")}
    paged, position = buckets.landing.page("", 1)
    while position:
        more, position = buckets.landing.page(position, 1)
        paged += more
    assert sorted((each.bucket, each.key) for each in paged) == sorted(found)
    assert buckets.landing.newest("a.csv")["a.csv"].bucket == own.bucket
    theirs = buckets.landing.newest("a.csv", bucket=buckets.other)["a.csv"]
    assert theirs.bucket == buckets.other
    assert len({ingestion_id(own), ingestion_id(theirs)}) == 2
    buckets.landing.download(theirs, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"theirs"
    assert buckets.landing.manifest(theirs)[0] == b"theirs"
    assert buckets.landing.brought("b.csv", buckets.other)[0].bucket == buckets.other


def test_a_search_begins_again_if_its_bucket_is_no_longer_named(s3: Any) -> None:
    """A position in a bucket that the stage no longer names is lost, as a deleted version's is."""
    own, other = bucket(s3), bucket(s3)
    _, position = Landing(s3, own, other).page("")
    assert other in position
    with pytest.raises(LostPosition, match=other):
        Landing(s3, own).page(position)


def aged(name: str, seconds: float) -> None:
    """Make every version in a moto bucket older by this much."""
    keys = s3_backends["123456789012"]["aws"].buckets[name].keys
    for entry in chain.from_iterable(entries for _, entries in keys.iterlists()):
        entry.last_modified -= timedelta(seconds=seconds)


def bucket(s3: Any, *, versioned: bool = True) -> str:
    """Return a new bucket."""
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    if versioned:
        status = {"Status": "Enabled"}
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=status)
    return name


@pytest.mark.parametrize("body", [bytes, BytesIO])
def test_an_upload_is_found_by_listing(
    buckets: Buckets, body: Callable[[bytes], bytes | BytesIO]
) -> None:
    """Upload and listing give the same object, under any key, of bytes and of a file."""
    key = "shop/orders/Flüge 1+1 (100%).csv"
    assert list(buckets.landing.landed()) == []
    put = buckets.landing.put(key, body(b"12345"))
    (found,) = buckets.landing.landed()
    assert found.landed_at.endswith("+00:00")
    assert replace(found, landed_at="") == put
    assert (found.bucket, found.key, found.size) == (buckets.landing.bucket, key, 5)


def test_every_version_is_an_object(buckets: Buckets) -> None:
    """A key that was put twice, even with the same bytes, has landed twice."""
    puts = [buckets.landing.put("a", body) for body in (b"old", b"new", b"new")]
    buckets.landing.put("b", b"new")
    ids = {ingestion_id(found) for found in buckets.landing.landed()}
    assert len(ids) == 4
    assert {ingestion_id(put) for put in puts} < ids


def test_a_listing_continues_where_it_stopped(buckets: Buckets) -> None:
    """Pages of any size list every version once, within a key as well as between keys."""
    for key in ("Flüge 1+1.csv", "a", "a", "a", "z"):
        buckets.landing.put(key, b"")
    listed = list(buckets.landing.landed())
    for size in (1, 2, 4, 5):
        paged, position = buckets.landing.page("", size)
        while position:
            assert len(paged) % size == 0 or len(paged) == len(listed)  # where a bucket ends
            more, position = buckets.landing.page(position, size)
            paged += more
        assert paged == listed


def test_the_newest_versions_of_a_folder_are_found(buckets: Buckets) -> None:
    """The newest version of each key of a folder is found."""
    for body in (b"old", b"newer"):
        newest = buckets.landing.put("batches/a/one.csv", body)
    buckets.landing.put("batches/a/in/two.csv", b"2")
    buckets.landing.put("batches/ab/three.csv", b"3")
    found = buckets.landing.newest("batches/a/")
    assert sorted(found) == ["batches/a/in/two.csv", "batches/a/one.csv"]
    assert replace(found["batches/a/one.csv"], landed_at="") == newest


def test_the_newest_versions_at_a_time_are_found(buckets: Buckets) -> None:
    """The newest version at an earlier time is found, whatever happened since."""
    put = buckets.landing.put
    story: list[Callable[[], object]] = [
        lambda: put("batches/a/one.csv", b"1"),
        lambda: put("batches/a/two.csv", b"1"),
        lambda: put("batches/a/one.csv", b"22"),
        lambda: buckets.delete("batches/a/one.csv"),
        lambda: put("batches/a/one.csv", b"333"),
        lambda: buckets.delete("batches/a/two.csv"),
    ]
    marks = []
    for happens in story:
        happens()
        marks.append(put("batches/a/_manifest.json", b"{}"))
        buckets.wait(60)
    found = []
    for mark in marks:
        _, at = buckets.landing.manifest(mark)
        newest = buckets.landing.newest("batches/a/", at)
        assert newest.pop("batches/a/_manifest.json").version == mark.version
        found.append({key.removeprefix("batches/a/"): each.size for key, each in newest.items()})
    assert found == [
        {"one.csv": 1},
        {"one.csv": 1, "two.csv": 1},
        {"one.csv": 2, "two.csv": 1},
        {"two.csv": 1},
        {"one.csv": 3, "two.csv": 1},
        {"one.csv": 3},
    ]
    assert set(buckets.landing.newest("batches/a/")) == {
        "batches/a/_manifest.json",
        "batches/a/one.csv",
    }


SECOND = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("latest", "found"), [("marker", []), ("version", ["v2"]), ("neither", ["v2"])]
)
def test_within_one_second(latest: str, found: list[str]) -> None:
    """Of versions within one second the first in the listing counts, if it may exist."""
    client = boto3.client("s3", **ACCOUNT)
    entry = {"Key": "a/b.csv", "LastModified": SECOND, "IsLatest": False}
    one, two = ({**entry, "VersionId": v, "ETag": '"e"', "Size": 1} for v in ("v1", "v2"))
    marker = {**entry, "VersionId": "v3"}
    for which, is_latest in ((marker, latest == "marker"), (two, latest == "version")):
        which["IsLatest"] = is_latest
    with Stubber(client) as stubber:
        page = {"Versions": [two, one], "DeleteMarkers": [marker]}
        stubber.add_response("list_object_versions", page)
        newest = Landing(client, "landing").newest("a/", "2026-03-01T12:00:00.999+00:00")
    assert [each.version for each in newest.values()] == found


def test_a_manifest_is_read_as_it_landed(buckets: Buckets) -> None:
    """Each version has its own text; a missing one is missing, and a huge one is not read."""
    first, second = (buckets.landing.put("batches/a/_manifest.json", body) for body in (b"1", b"2"))
    assert [buckets.landing.manifest(each)[0] for each in (first, second)] == [b"1", b"2"]
    with pytest.raises(Missing):
        buckets.landing.manifest(replace(first, key="batches/b/_manifest.json"))
    with pytest.raises(Permanent, match="TOO_LARGE"):
        buckets.landing.manifest(buckets.landing.put("batches/a/_manifest.json", b" " * 65_537))


def test_what_landed_is_downloaded_as_it_was(buckets: Buckets, tmp_path: Path) -> None:
    """Each version's own bytes are written, also of a deleted key; a missing version is missing."""
    first, second = (buckets.landing.put("a/ü 1.csv", body) for body in (b"1" * 3_000_000, b"2"))
    buckets.delete("a/ü 1.csv")
    for landed, body in ((first, b"1" * 3_000_000), (second, b"2")):
        buckets.landing.download(landed, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == body
    with pytest.raises(Missing):
        buckets.landing.download(replace(second, key="a/2.csv"), tmp_path / "copy")


def test_a_file_that_was_overwritten_without_versions_is_gone(s3: Any, tmp_path: Path) -> None:
    """In a bucket without versions another file under the key is not taken for the landed one."""
    landing = Landing(s3, bucket(s3, versioned=False))
    landed = landing.put("a.csv", b"1")
    landing.download(landed, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"1"
    landing.put("a.csv", b"2")
    with pytest.raises(Overwritten):
        landing.download(landed, tmp_path / "copy")


def test_a_contract_has_a_limit(buckets: Buckets) -> None:
    """A contract at the size limit is in force; one byte more is an error."""
    text = ORDERS.encode() + b"#" * (LIMITS.largest_contract - len(ORDERS))
    buckets.put_text("contracts/shop.orders.yaml", text)
    assert [stored.contract.table for stored in buckets.lake.contracts()] == ["shop.orders"]
    buckets.put_text("contracts/shop.orders.yaml", text + b"#")
    with pytest.raises(Permanent, match=r"TOO_LARGE: contracts/shop\.orders\.yaml"):
        buckets.lake.contracts()


def test_a_report_has_a_limit(buckets: Buckets) -> None:
    """A report at the size limit is read; one byte more is an error."""
    text = REPORT.to_json().encode()
    text += b" " * (LIMITS.largest_report - len(text))
    buckets.put_text("reports/a.b/1/1.json", text)
    assert buckets.lake.report("reports/a.b/1/1.json") == REPORT
    buckets.put_text("reports/a.b/1/1.json", text + b" ")
    with pytest.raises(Permanent, match=r"TOO_LARGE: reports/a\.b/1/1\.json"):
        buckets.lake.report("reports/a.b/1/1.json")


def test_the_reports_of_a_group_are_read_at_once(buckets: Buckets) -> None:
    """An object that repeats several reports is read with one request, up to the limit."""
    key = f"reports/a.b/group-{16 * 'a'}.json"
    with pytest.raises(Missing, match=re.escape(key)):
        buckets.lake.group_reports(key)
    both = [replace(REPORT, attempt=attempt) for attempt in (1, 2)]
    buckets.put_text(key, to_lines(both))
    assert buckets.lake.group_reports(key) == {each.key: each for each in both}
    buckets.put_text(key, to_lines(both) + b"\n{}")
    with pytest.raises(Permanent, match=f"BAD_REPORT: the audit report {re.escape(key)} "):
        buckets.lake.group_reports(key)
    buckets.put_text(key, to_lines(both) + b" " * LIMITS.largest_report)
    with pytest.raises(Permanent, match=f"TOO_LARGE: {re.escape(key)}"):
        buckets.lake.group_reports(key)


def test_reports_are_listed(buckets: Buckets) -> None:
    """The keys of all reports are listed, each once, and nothing else."""
    assert list(buckets.lake.reports()) == []
    reports = ["reports/a.b/1/1.json", "reports/a.b/1/2.json"]
    together = f"reports/a.b/group-{16 * 'a'}.json"
    for key in (*reports, reports[0], together, "contracts/a.b.yaml", "warehouse/x"):
        buckets.put_text(key, b"{}")
    assert list(buckets.lake.reports()) == reports


@pytest.mark.parametrize("strangers", [0, 200])
def test_the_reports_of_some_ingestions_are_listed(buckets: Buckets, strangers: int) -> None:
    """The reports of a few ingestions, and of many, are listed from all tables."""
    wanted = ["reports/a.b/1/1.json", "reports/a.b/1/2.json", "reports/a.c/2/1.json"]
    for key in (*wanted, "reports/a.b/11/1.json"):
        buckets.put_text(key, b"{}")
    ids = ["1", "2", "3", *(f"none {number}" for number in range(strangers))]
    listed = list(buckets.lake.reports(ids))
    assert [key for key in listed if key.split("/")[2] in ids] == wanted
    assert len(listed) == 3 or strangers


def test_the_reports_of_a_part_of_an_id_are_listed(buckets: Buckets) -> None:
    """The name of a branch has a table and a part of an id: their reports are found by these."""
    wanted = ["reports/a.b/12ab/1.json", "reports/a.b/12ab/2.json", "reports/a.b/12cd/1.json"]
    for key in (*wanted, "reports/a.b/13ab/1.json", "reports/a.c/12ab/1.json"):
        buckets.put_text(key, b"{}")
    assert list(buckets.lake.reports_of("a.b", "12")) == wanted
    assert list(buckets.lake.reports_of("a.b", "9")) == []


def test_a_contract_in_force_is_known(buckets: Buckets) -> None:
    """A stored contract is in force, with its key and version."""
    contract = parse(ORDERS, "orders")
    key = buckets.lake.put_contract(contract, ORDERS)
    (stored,) = buckets.lake.contracts()
    assert stored.contract == contract
    assert stored.key == key == "contracts/shop.orders.yaml"
    assert stored.version


def test_a_changed_contract_is_in_force_at_once(buckets: Buckets) -> None:
    """The next reading has the new text under a new version."""
    buckets.lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    buckets.lake.put_contract(parse(ITEMS, "items"), ITEMS)
    before = {s.contract.table: s for s in buckets.lake.contracts()}
    changed = ORDERS.replace("1.0.0", "2.0.0")
    buckets.lake.put_contract(parse(changed, "orders"), changed)
    after = {s.contract.table: s for s in buckets.lake.contracts()}
    assert after["shop.items"] == before["shop.items"]
    assert after["shop.orders"].contract.version == "2.0.0"
    assert after["shop.orders"].version != before["shop.orders"].version


def test_a_contract_is_read_as_it_was(buckets: Buckets) -> None:
    """Each earlier version of a contract can be read."""
    key = buckets.lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    (first,) = buckets.lake.contracts()
    buckets.put_text(key, ORDERS.replace("1.0.0", "2.0.0").encode())
    (second,) = buckets.lake.contracts()
    assert buckets.lake.contract_at(key, first.version) == first
    assert buckets.lake.contract_at(key, second.version) == second
    assert buckets.lake.contract_at(key, first.version).text == ORDERS
    assert buckets.lake.contract_at(key, "") == second


@pytest.mark.parametrize(
    ("key", "version"),
    [("contracts/shop.orders.yaml", 32 * "0"), ("contracts/shop.items.yaml", "")],
)
def test_a_version_that_never_was_is_missing(buckets: Buckets, key: str, version: str) -> None:
    """An unknown version is missing, and the error names the key."""
    buckets.lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    with pytest.raises(Missing, match=re.escape(key)):
        buckets.lake.contract_at(key, version)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"kind: Something", "DataContract"),
        (ORDERS.replace("shop-orders", "Aufträge").encode("latin-1"), "line 3: is not UTF-8 text"),
    ],
)
def test_a_broken_contract_is_refused(buckets: Buckets, text: bytes, problem: str) -> None:
    """An invalid contract is refused by name."""
    buckets.put_text("contracts/shop.orders.yaml", text)
    with pytest.raises(ContractInvalid, match=r"contracts/shop\.orders\.yaml") as refusal:
        buckets.lake.contracts()
    assert problem in refusal.value.message


def test_a_broken_contract_stands_in_no_other_tables_way(buckets: Buckets) -> None:
    """For one landed key, an invalid contract of another table is skipped."""
    buckets.lake.put_contract(parse(ITEMS, "items"), ITEMS)
    buckets.put_text("contracts/shop.orders.yaml", ORDERS.replace("integer", "intger").encode())
    (items,) = buckets.lake.contracts("shop/items/1.csv")
    assert items.contract.table == "shop.items"
    for key in ("shop/orders/1.csv", ""):
        with pytest.raises(ContractInvalid, match=r"contracts/shop\.orders\.yaml"):
            buckets.lake.contracts(key)


@pytest.mark.parametrize("key", ["contracts/", "contracts/README.md", "contracts/.DS_Store"])
def test_an_object_beside_the_contracts_is_not_read(buckets: Buckets, key: str) -> None:
    """Objects beside the contracts are not read."""
    buckets.put_text(key, b"\xff: no contract")
    assert buckets.lake.contracts() == []


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff\xfe", REPORT.to_json().encode()[:-9]])
def test_an_unreadable_report_is_refused(buckets: Buckets, text: bytes) -> None:
    """An unreadable report is a permanent error that names it."""
    buckets.put_text("reports/x/1.json", text)
    with pytest.raises(Permanent, match=r"BAD_REPORT: the audit report reports/x/1\.json "):
        buckets.lake.report("reports/x/1.json")


def test_a_change_is_put_once(buckets: Buckets) -> None:
    """A change is stored and listed once, with its first content."""
    change = Change("shop.orders", "DELETE FROM shop.orders -- Größe", "token", "Ann", "why")
    put = buckets.lake.put_change(change)
    assert buckets.lake.put_change(replace(change, by="Bob")) == put
    assert buckets.lake.change(put.key) == change
    (listed,) = buckets.lake.changes()
    assert list(buckets.lake.changes("shop.orders")) == [listed]
    assert list(buckets.lake.changes("shop.order")) == []
    assert listed.landed_at
    assert replace(listed, landed_at="") == put
    assert put.bucket == buckets.lake.bucket


def test_changes_are_distinguished_from_other_texts(buckets: Buckets) -> None:
    """Only keys of changes are listed, and a missing one is missing."""
    buckets.put_text("changes/shop.orders/notes.txt", b"not one of ours")
    assert list(buckets.lake.changes()) == []
    with pytest.raises(Missing):
        buckets.lake.change(Change("shop.orders", "DELETE FROM shop.orders", "t").key)


def test_objects_are_as_old_as_the_clock_says_in_memory() -> None:
    """The clock of the storage is the one by which objects have their times."""
    clock = FakeClock()
    landing, lake = FakeLanding(clock), FakeLake(clock)
    before = lake.clock()
    landing.put("a.csv", b"a")
    (found,) = landing.landed()
    assert before <= datetime.fromisoformat(found.landed_at) <= lake.clock() + timedelta(seconds=1)


@pytest.mark.stack
def test_objects_are_as_old_as_the_clock_says_on_s3(servers: Servers) -> None:
    """S3's answers have the time, which moto within a process leaves out."""
    lake = Lake(boto3.client("s3", endpoint_url=servers.s3, **ACCOUNT), "lake")
    before = lake.clock()
    lake.put_contract(parse(ORDERS, "orders.yaml"), ORDERS)
    (found,) = (each for each in lake.stored("contracts/") if "shop.orders" in each.key)
    assert before <= found.modified <= lake.clock() + timedelta(seconds=1)


def test_a_storage_without_a_clock_is_refused() -> None:
    """Without S3's time nothing is known about the age of objects."""
    client = boto3.client("s3", **ACCOUNT)
    answer: dict[str, Any] = {"ResponseMetadata": {"HTTPHeaders": {}}}
    with Stubber(client) as stubbed:
        stubbed.add_response("head_bucket", answer, {"Bucket": "lake"})
        with pytest.raises(Transient, match="what time it is"):
            Lake(client, "lake").clock()


def test_deleted_objects_are_gone(buckets: Buckets) -> None:
    """Exactly the named objects are deleted; repeating it is no error."""
    for name in ("a", "b ü+", "c"):
        buckets.put_text(f"reports/{name}", REPORT.to_json().encode())
    for _ in range(2):
        buckets.lake.delete_objects(["reports/a", "reports/b ü+"])
        buckets.lake.delete_objects([])
    for name in ("a", "b ü+"):
        with pytest.raises(Missing, match=re.escape(f"reports/{name}")):
            buckets.lake.report(f"reports/{name}")
    assert buckets.lake.report("reports/c") == REPORT


def test_a_deleted_object_can_be_had_back(s3: Any) -> None:
    """A versioned bucket keeps a deleted version behind its marker."""
    lake = Lake(s3, bucket(s3))
    s3.put_object(Bucket=lake.bucket, Key="a", Body=b"x")
    lake.delete_objects(["a"])
    found = s3.list_object_versions(Bucket=lake.bucket)
    assert [each["Key"] for each in found["Versions"]] == ["a"]
    assert [each["Key"] for each in found["DeleteMarkers"]] == ["a"]


def test_more_are_deleted_than_fit_a_request(s3: Any) -> None:
    """More objects are deleted than one request of a thousand takes."""
    lake = Lake(s3, bucket(s3))
    for number in (0, 999, 1000, 1001):
        s3.put_object(Bucket=lake.bucket, Key=f"{number}", Body=b"")
    lake.delete_objects([f"{number}" for number in range(1002)])
    assert s3.list_objects_v2(Bucket=lake.bucket)["KeyCount"] == 0


def test_a_deletion_that_is_refused_is_reported() -> None:
    """S3 answers 200 and lists the objects that it did not delete: that is an error."""
    client = boto3.client("s3", **ACCOUNT)
    with Stubber(client) as stubber:
        refused = {"Errors": [{"Key": "a", "Code": "AccessDenied"}]}
        stubber.add_response("delete_objects", refused)
        with pytest.raises(Transient, match=r"RIGHT_MISSING.*a: AccessDenied"):
            Lake(client, "lake").delete_objects(["a"])


def test_without_versions_the_etag_is_the_version(s3: Any) -> None:
    """Without versions, put, listing and event give one identity."""
    landing = Landing(s3, bucket(s3, versioned=False))
    put = landing.put("a", b"x")
    (found,) = landing.landed()
    assert put.version == found.version == put.etag
    assert ingestion_id(put) == ingestion_id(found)


def test_a_deleted_object_has_landed_all_the_same(s3: Any) -> None:
    """A delete marker is not an object and does not undo a landing."""
    landing = Landing(s3, bucket(s3))
    put = landing.put("a", b"x")
    s3.delete_object(Bucket=landing.bucket, Key="a")
    assert [found.version for found in landing.landed()] == [put.version]


def test_a_listing_has_no_end_of_page(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects on all pages of a listing are found."""
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    landing = Landing(s3, bucket(s3))
    for number in range(5):
        landing.put(f"{number}", b"")
    assert len(list(landing.landed())) == 5


def test_a_position_that_s3_refuses_is_lost() -> None:
    """S3's refusal of a position is told apart from other refusals."""
    client = boto3.client("s3", **ACCOUNT)
    for code, error in (("InvalidArgument", LostPosition), ("SlowDown", Transient)):
        with Stubber(client) as stubber:
            stubber.add_client_error("list_object_versions", code)
            with pytest.raises(error):
                Landing(client, "landing").page('["a", "v1"]')


def test_a_contract_is_read_once_a_version(s3: Any) -> None:
    """An unchanged contract is not fetched again: only the listing is."""
    lake = Lake(s3, bucket(s3))
    lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    read: list[object] = []
    s3.meta.events.register_first("before-call.s3.GetObject", lambda **call: read.append(call))
    assert lake.contracts() == lake.contracts()
    assert len(read) == 1


def test_a_batch_of_messages_lists_the_contracts_once(s3: Any) -> None:
    """Work that lists the contracts once has those of that moment; the next work has the newer."""
    lake = Lake(s3, bucket(s3))
    lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    work = lake.listed_once()
    assert work.contracts()
    lake.put_contract(parse(RETURNS, "returns"), RETURNS)
    assert [each.contract.table for each in work.contracts()] == ["shop.orders"]
    assert len(lake.listed_once().contracts()) == len(lake.contracts()) == 2


def test_baselines_replace_only_what_they_were_made_from(buckets: Buckets) -> None:
    """Baselines begin empty; of two writers with the same base the second is refused."""
    lake = buckets.lake
    first = Baselines("shop.orders", {"d@r": Series((Value("a", "2026", 1.5),))})
    second = Baselines("shop.orders", {"d@r": Series((Value("b", "2026", 2.5),))})
    assert lake.baselines("shop.orders") == (Baselines("shop.orders"), "")
    lake.put_baselines(first, "")
    with pytest.raises(Overwritten):
        lake.put_baselines(second, "")
    kept, etag = lake.baselines("shop.orders")
    assert kept == first
    lake.put_baselines(second, etag)
    with pytest.raises(Overwritten):
        lake.put_baselines(first, etag)
    assert lake.baselines("shop.orders")[0] == second


def test_a_checkpoint_replaces_only_the_one_that_it_was_made_from(buckets: Buckets) -> None:
    """Of two checkpoints with the same base the second is refused."""
    lake = buckets.lake
    assert lake.checkpoint() == (None, "")
    first = Checkpoint("a" * 64, "2026-03-01", {"shop.orders": TableCount(3, 4, -1)})
    lake.put_checkpoint(first, "")
    with pytest.raises(Overwritten):
        lake.put_checkpoint(first, "")
    found, etag = lake.checkpoint()
    assert found == first
    second = Checkpoint("b" * 64, "2026-03-02")
    lake.put_checkpoint(second, etag)
    with pytest.raises(Overwritten):
        lake.put_checkpoint(first, etag)
    assert lake.checkpoint()[0] == second


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"schema": "other/1"}'])
def test_an_invalid_checkpoint_is_refused(buckets: Buckets, text: bytes) -> None:
    """An invalid checkpoint is an error that says what to do."""
    buckets.put_text("reconcile/checkpoint.json", text)
    with pytest.raises(Permanent, match=r"BAD_CHECKPOINT.*delete it"):
        buckets.lake.checkpoint()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_data_file_that_was_deleted_is_gone(buckets: Buckets, scheme: str) -> None:
    """A deleted data file is gone; an existing one is not, also where Hadoop wrote its address."""
    buckets.put_text("warehouse/a.parquet", b"rows")
    address = f"{scheme}://{buckets.lake.bucket}/warehouse/a.parquet"
    assert not buckets.lake.is_gone(address)
    buckets.lake.delete_objects(["warehouse/a.parquet"])
    assert buckets.lake.is_gone(address)


def test_stored_objects_are_listed(s3: Any) -> None:
    """Objects under a prefix are listed with size and time, without deleted ones."""
    lake = Lake(s3, bucket(s3))
    for name, body in (("a b", b"rows"), ("b", b""), ("c", b"x")):
        s3.put_object(Bucket=lake.bucket, Key=f"warehouse/{name}", Body=body)
    s3.put_object(Bucket=lake.bucket, Key="reports/a", Body=b"x")
    lake.delete_objects(["warehouse/c"])
    found = list(lake.stored("warehouse/"))
    assert [(each.key, each.bytes) for each in found] == [("warehouse/a b", 4), ("warehouse/b", 0)]
    assert all(each.modified.tzinfo for each in found)


def test_the_report_of_a_comparison_is_read(buckets: Buckets) -> None:
    """A report is what the job wrote; a missing one and another text are errors."""
    one = Fingerprint(3, "12")
    report = Comparison("shop.orders", "upkeep/a", "b" * 64, "c" * 64, one, one)
    buckets.put_text("upkeep/x.json", report.to_json().encode())
    assert buckets.lake.comparison("upkeep/x.json") == report
    with pytest.raises(Missing):
        buckets.lake.comparison("upkeep/y.json")
    buckets.put_text("upkeep/y.json", b"[]")
    with pytest.raises(Permanent, match="BAD_REPORT"):
        buckets.lake.comparison("upkeep/y.json")
