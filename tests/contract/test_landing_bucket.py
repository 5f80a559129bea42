"""The landing bucket behaves alike in memory and on S3."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from functions.adapters.landing import Landing, LostPosition
from functions.adapters.s3 import Missing, Overwritten
from lakegate.errors import Permanent, Transient
from lakegate.job.landing import ingestion_id
from tests.contract.aws import ACCOUNT
from tests.contract.buckets import Buckets, bucket


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
