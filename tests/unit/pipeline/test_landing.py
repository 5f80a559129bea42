"""Names derived from a landed object, which are stable and valid wherever they are used."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakegate.job.landing import (
    LandedObject,
    branch_name,
    hidden_rule,
    ignore_rule,
    ingestion_id,
    parse_branch_name,
    parse_report_key,
    parse_run_name,
    report_key,
    run_name,
)

LANDED = LandedObject("landing", "nyc/flights/a.parquet", "v1", "e1", 10, "s1", "2026-03-01")
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=99)
TABLES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,9}\.[A-Za-z][A-Za-z0-9_]{0,9}", fullmatch=True)
IDS = st.from_regex(r"[0-9a-f]{32}", fullmatch=True)
# Nessie's own pattern, from its API's class Validation.
REFERENCE_NAME = re.compile(
    r"(?:[A-Za-z](?:(?:(?![.][.])[A-Za-z0-9./_-])*[A-Za-z0-9_-])?)|-", re.ASCII
)


@given(st.integers(0), st.text(), st.text(), st.text())
def test_identity_is_bucket_key_and_version(
    size: int, etag: str, sequencer: str, landed_at: str
) -> None:
    """Identity depends on bucket, key and version only."""
    noticed = replace(LANDED, size=size, etag=etag, sequencer=sequencer, landed_at=landed_at)
    assert ingestion_id(noticed) == ingestion_id(LANDED)


@given(st.tuples(KEYS, KEYS, KEYS), st.tuples(KEYS, KEYS, KEYS))
@example(("a", "bc", "d"), ("ab", "c", "d"))
@example(("a", "b", "cd"), ("a", "bc", "d"))
def test_another_object_has_another_identity(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    """Two objects have the same identity only if bucket, key and version are the same."""
    ids = [ingestion_id(LandedObject(*names, etag="", size=0)) for names in (one, other)]
    assert (ids[0] == ids[1]) == (one == other)


def test_identity_never_changes() -> None:
    """The identity of an object is stable across releases, as ledgers and branches depend on it."""
    assert ingestion_id(LANDED) == "f6c62188944d12cfc3eff561186f9c5a"


@given(TABLES, KEYS, IDS, st.integers(1, 99))
@example("a.b", "nyc/flights/..", "0" * 32, 1)
@example("a.b", "ümläute + spaces.parquet", "0" * 32, 1)
def test_a_branch_name_is_one_that_nessie_takes(
    table: str, key: str, ingestion: str, attempt: int
) -> None:
    """For any key, the branch name is a valid reference name of Nessie's, under the table's."""
    name = branch_name(table, key, ingestion, attempt)
    assert REFERENCE_NAME.fullmatch(name)
    assert name.startswith(f"ingest/{table}/")
    assert name.count("/") == 2


@given(KEYS, KEYS, IDS, IDS)
def test_branches_of_two_ingestions_differ(one: str, other: str, first: str, second: str) -> None:
    """Ingestions with different ids never share a branch, nor do attempts of one."""
    if first[:12] != second[:12]:
        assert branch_name("a.b", one, first, 1) != branch_name("a.b", other, second, 1)
    assert branch_name("a.b", one, first, 1) != branch_name("a.b", one, first, 2)


@given(KEYS, IDS, st.integers(2, 99))
def test_later_branches_begin_like_the_first(key: str, ingestion: str, attempt: int) -> None:
    """All branches of an ingestion begin with the name of its first, as clean-up requires."""
    first = branch_name("a.b", key, ingestion, 1)
    assert branch_name("a.b", key, ingestion, attempt).startswith(first)


def test_a_branch_name_can_be_read() -> None:
    """A branch's name contains table and file readably."""
    name = branch_name("nyc.flights", "nyc/flights/2013-01-01 (new).parquet", "0123456789abcd", 1)
    assert name == "ingest/nyc.flights/2013-01-01-new-parquet-0123456789ab"
    assert branch_name("nyc.flights", "x/ü", "0123456789abcd", 3).endswith("/file-0123456789ab-3")


@given(TABLES, KEYS, IDS, st.integers(1, 10**6))
@example("a.b", "0123456789ab", "9" * 32, 1)
@example("a.b", "0123456789ab-2", "9" * 32, 3)
def test_a_branch_name_says_whose_branch_it_is(
    table: str, key: str, ingestion: str, attempt: int
) -> None:
    """A branch's name gives table, attempt and the first part of the ingestion id."""
    name = branch_name(table, key, ingestion, attempt)
    assert parse_branch_name(name) == (table, ingestion[:12], attempt)


@pytest.mark.parametrize(
    "name",
    ["main", "ingest/a.b/x", "publish/a.b/0123456789ab-1", "ingest/a.b/x-0123456789ab-0", ""],
)
def test_a_strange_branch_name_is_refused(name: str) -> None:
    """The name of another branch is refused."""
    with pytest.raises(ValueError, match="not the name"):
        parse_branch_name(name)


@given(TABLES, IDS, st.integers(1, 10**6))
def test_a_reports_key_says_whose_report_it_is(table: str, ingestion: str, attempt: int) -> None:
    """A report's key gives table, ingestion and attempt."""
    assert parse_report_key(report_key(table, ingestion, attempt)) == (table, ingestion, attempt)


@pytest.mark.parametrize("key", ["", "reports/a.b/x/1.json", f"reports/a.b/{'0' * 32}/1.json.bak"])
def test_a_strange_reports_key_is_refused(key: str) -> None:
    """Another key among the reports is refused."""
    with pytest.raises(ValueError, match="not the key"):
        parse_report_key(key)


@given(IDS, st.integers(1, 10**6))
def test_a_run_name_says_whose_run_it_is(ingestion: str, attempt: int) -> None:
    """A run's name is a valid client token of EMR's, and gives ingestion and attempt."""
    name = run_name(ingestion, attempt)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name)
    assert parse_run_name(name) == (ingestion, attempt)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nightly",
        "a" * 32,
        "a" * 32 + "-0",
        "a" * 32 + "-01",
        "a" * 32 + "-1\n",
        "A" * 32 + "-1",
        "a" * 31 + "-1",
        "x" + "a" * 32 + "-1",
    ],
)
def test_a_strange_run_name_is_refused(name: str) -> None:
    """The name of another program's run is refused."""
    with pytest.raises(ValueError, match="not the name"):
        parse_run_name(name)


@pytest.mark.parametrize(
    ("key", "is_ignored"),
    [
        ("nyc/flights/_SUCCESS", True),
        ("nyc/flights/.part-0.parquet.crc", True),
        ("nyc/flights/", True),
        ("_SUCCESS", True),
        ("nyc/", True),
        ("nyc/flights/a.parquet", False),
        ("nyc/flights/a_b.parquet", False),
        ("_old/flights/a.parquet", False),
        ("nyc/flights/a.csv.control.json", True),
        ("nyc/flights/a.csv.control.csv", True),
        ("nyc/flights/control.json", False),
        ("nyc/flights/a.csv._COPYING_", True),
        ("nyc/flights/a_COPYING_", False),
        ("a", False),
    ],
)
def test_markers_are_ignored_and_nothing_else(key: str, is_ignored: bool) -> None:
    """Folder markers, names that begin with _ or a dot, and control files are ignored by a rule."""
    assert bool(ignore_rule(key)) == is_ignored


@pytest.mark.parametrize(
    ("key", "is_hidden"),
    [
        ("_raw/.in/flights/a.parquet", False),
        ("_raw/.in/flights/2026/a.parquet", False),
        ("_raw/.in/flights/_c0=1/a.parquet", False),
        ("_raw/.in/flights/a_b/a.parquet", False),
        ("_raw/.in/flights/_temporary/0/task_1/a.parquet", True),
        ("_raw/.in/flights/2026/.hive-staging_1/a.orc", True),
        ("_raw/.in/flights/_delta_log/00000.json", True),
    ],
)
def test_folders_of_work_in_progress_are_hidden(key: str, is_hidden: bool) -> None:
    """Folders that begin with _ or a dot are hidden below a landing prefix, but not in it."""
    assert bool(hidden_rule(key, "_raw/.in/flights/")) == is_hidden


def test_each_attempt_has_its_own_report() -> None:
    """Reports lie under their table and ingestion, one for each attempt."""
    assert report_key("nyc.flights", "abc", 2) == "reports/nyc.flights/abc/2.json"


def test_an_object_has_an_address() -> None:
    """An object's address has the form that users type."""
    assert LANDED.uri == "s3://landing/nyc/flights/a.parquet"
