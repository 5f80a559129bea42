"""Files copied from another bucket into the landing bucket, in memory and in S3."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from functions.adapters.landing import Landing
from functions.adapters.s3 import Missing, Overwritten
from lakegate.errors import Transient
from tests.contract.buckets import bucket
from tests.fakes.clock import FakeClock
from tests.fakes.storage import FakeLanding


@dataclass(frozen=True)
class Places:
    """The landing bucket, another bucket's name, and a way to put an object there."""

    landing: Landing | FakeLanding
    other: str
    put: Callable[[str, bytes], object]


@pytest.fixture(params=["in memory", "S3", "S3 without versions"])
def places(request: pytest.FixtureRequest, s3: Any) -> Places:
    if request.param == "in memory":
        fake = FakeLanding(FakeClock())
        return Places(fake, "old", lambda key, body: fake.put_elsewhere("old", key, body))
    landing = Landing(s3, bucket(s3, versioned=request.param == "S3"))
    other = bucket(s3, versioned=False)
    return Places(landing, other, lambda key, body: s3.put_object(Bucket=other, Key=key, Body=body))


def test_files_of_another_bucket_are_listed(places: Places) -> None:
    """All objects with the prefix are listed in order of their keys, without folder markers."""
    for key in ("a/ü 2.csv", "a/1.csv", "a/", "b/3.csv", "ab.csv"):
        places.put(key, b"" if key.endswith("/") else b"id\n")
    found = list(places.landing.sources(places.other, "a"))
    assert [(each.bucket, each.key, each.size) for each in found] == [
        (places.other, key, 3) for key in ("a/1.csv", "a/ü 2.csv", "ab.csv")
    ]
    assert list(places.landing.sources(places.other, "c")) == []


def test_a_copy_knows_its_source(places: Places) -> None:
    """A copy lands as an upload does, and carries its source's mark; an upload carries none."""
    places.put("a/ü.csv", b"id\n1\n")
    (source,) = places.landing.sources(places.other, "a/")
    landed = places.landing.bring(source, "shop/orders/ü.csv")
    (listed,) = places.landing.landed()
    assert (listed.key, listed.version, listed.etag, listed.size) == (
        landed.key,
        landed.version,
        landed.etag,
        5,
    )
    assert places.landing.brought("shop/orders/ü.csv") == (landed, source.mark)
    own = places.landing.put("shop/orders/own.csv", b"id\n")
    assert places.landing.brought("shop/orders/own.csv") == (own, "")


def test_a_source_that_changed_is_not_copied(places: Places) -> None:
    """A source that is another one than was listed, or is gone, is told from one that is there."""
    places.put("a/1.csv", b"id\n1\n")
    (source,) = places.landing.sources(places.other, "a/")
    places.put("a/1.csv", b"id\n2\n")
    with pytest.raises(Overwritten):
        places.landing.bring(source, "shop/orders/1.csv")
    (newer,) = places.landing.sources(places.other, "a/")
    assert newer.mark != source.mark
    assert list(places.landing.landed()) == []
    with pytest.raises(Missing):
        places.landing.brought("shop/orders/1.csv")


def test_a_key_is_replaced_only_as_it_was_known(places: Places) -> None:
    """What another has put under the key meanwhile stays, and the copy is refused."""
    key = "shop/orders/1.csv"
    places.put("a/1.csv", b"id\n1\n")
    (source,) = places.landing.sources(places.other, "a/")
    first = places.landing.bring(source, key)
    with pytest.raises(Overwritten):
        places.landing.bring(source, key)
    own = places.landing.put(key, b"id\n2\n")
    with pytest.raises(Overwritten):
        places.landing.bring(source, key, first)
    assert places.landing.brought(key) == (own, "")
    again = places.landing.bring(source, key, own)
    assert places.landing.brought(key) == (again, source.mark)


def test_a_missing_bucket_is_named(s3: Any) -> None:
    """A bucket that is not there raises an error with its name."""
    with pytest.raises(Transient, match="no-such-bucket"):
        list(Landing(s3, bucket(s3)).sources("no-such-bucket", ""))


def test_a_version_is_put_over_another(places: Places, tmp_path: Path) -> None:
    """A file is put over the version that it is made of, with its mark, and over no other one."""
    landing, file = places.landing, tmp_path / "mended"
    file.write_bytes(b"id\n2\n")
    first = landing.put("shop/orders/a.csv", b"id\nx\n")
    over = landing.put_over(first, file, "mark")
    assert (over.key, over.size, over.etag == first.etag) == (first.key, 5, False)
    assert landing.brought("shop/orders/a.csv") == (over, "mark")
    with pytest.raises(Overwritten):
        landing.put_over(first, file, "another")
    landing.put("shop/orders/a.csv", b"id\n3\n")
    with pytest.raises(Overwritten):
        landing.put_over(over, file, "another")
    with pytest.raises(Missing):
        landing.put_over(replace(first, key="shop/orders/b.csv"), file, "mark")
