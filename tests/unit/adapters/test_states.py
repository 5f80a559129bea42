"""What Nessie's answers say about the contents of commits."""

from datetime import UTC, datetime
from typing import Any

import pytest

from functions.adapters.nessie import Catalog
from functions.model.commits import Content, UnknownContent, contents_in
from tests.fakes import wire

SINCE = datetime(2026, 3, 2, tzinfo=UTC)


def entry(kind: str, **content: Any) -> dict[str, Any]:
    """Return an entry of contents, as Nessie lists them at a hash."""
    name = {"elements": ["shop", "thing"]}
    return {"type": kind, "name": name, "content": {"type": kind, **content}}


def commit(hash_: str, time: str, *written: str) -> dict[str, Any]:
    """Return a log's entry of a commit that wrote these metadata files."""
    key = {"elements": ["shop", "orders"]}
    content = ({"type": "ICEBERG_TABLE", "metadataLocation": each} for each in written)
    operations = [{"type": "PUT", "key": key, "content": each} for each in content]
    return {"commitMeta": {"hash": hash_, "commitTime": time}, "operations": operations}


def test_each_metadata_file_is_named() -> None:
    """Tables, views and functions have metadata; only a table's reaches other files."""
    found = [
        entry("ICEBERG_TABLE", metadataLocation="t"),
        entry("ICEBERG_VIEW", metadataLocation="v"),
        entry("UDF", metadataLocation="f"),
        entry("UDF", sqlText="of an old release"),
        entry("NAMESPACE", elements=["shop"]),
        {"type": "DELETE", "key": {"elements": ["shop", "orders"]}},
        {"type": "UNCHANGED", "key": {"elements": ["shop", "orders"]}},
        {"type": "PUT", "key": {"elements": ["a"]}, "content": {"type": "NAMESPACE"}},
    ]
    named = [Content("t"), Content("v", is_table=False), Content("f", is_table=False)]
    assert list(contents_in(found)) == named


@pytest.mark.parametrize("kind", ["DELTA_LAKE_TABLE", "HUDI", "UNKNOWN"])
def test_whose_files_are_unknown_is_an_error(kind: str) -> None:
    """A type of content that Lakegate does not know is named, with its key."""
    with pytest.raises(UnknownContent, match=rf"shop.thing is of the type {kind}"):
        list(contents_in([entry(kind, metadataLocation="m")]))


def test_a_write_without_content_is_an_error() -> None:
    """An operation of an unknown kind, or without its content, is not taken for none."""
    with pytest.raises(UnknownContent, match=r"a\.b is of the type PUT"):
        list(contents_in([{"type": "PUT", "key": {"elements": ["a", "b"]}, "content": None}]))


def test_the_state_at_the_beginning_is_named() -> None:
    """States are those at the hash, of its newer commits, and at the newest older commit."""
    log = [
        commit("c3", "2026-03-03T12:00:00Z", "three"),
        commit("c2", "2026-03-02T12:00:00Z", "two"),
        commit("c1", "2026-03-01T12:00:00Z", "one"),
    ]
    at_head, at_beginning = (
        {"entries": [entry("ICEBERG_TABLE", metadataLocation=name)]} for name in ("head", "begin")
    )
    answers = (at_head, {"logEntries": log}, at_beginning)
    with wire.answering(*(wire.json("200 OK", each) for each in answers)) as uri:
        found = Catalog(uri, "token").states("c3", SINCE, set())
        assert [each.metadata for each in found] == ["head", "three", "two", "begin"]
