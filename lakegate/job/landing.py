"""Landed objects, and the names that follow from them.

Every name here is derived, never random: after a duplicate event or a crash, the same landed object
has the same ingestion, branch, job run and report.
"""

import hashlib
import re
from dataclasses import dataclass

_READABLE_LENGTH = 40
_ID_LENGTH = 32
WRITTEN_BY_JOBS = "ingest/"  # how the names of the branches begin that a job may write
ID_PART = 12  # digits of the id in a branch's name
_FRESH = "publish/"
OWN_BRANCHES = (WRITTEN_BY_JOBS, _FRESH)  # how those of ingestions begin
_OF_ONE = re.compile(r"ingest/.*-([0-9a-f]{12})(?:-\d+)?|publish/.*/([0-9a-f]{12})-[^/]*")
# Stands in a table's place for several tables: a table's name always has a dot.
BATCH = "batch"
BATCHES, MANIFEST = "batches/", "_manifest.json"
BATCH_MEMBER = "BATCH_MEMBER"  # why a file in a batch's folder is not ingested by itself
_BATCHED = re.compile(rf"{BATCHES}(?P<name>[^/]+)/(?P<file>.+)", re.DOTALL)
_IGNORED_NAME = re.compile(r"(^|/)([_.][^/]*|[^/]*/)$")
_UNFINISHED_NAME = re.compile(r"\._COPYING_$")
_HIDDEN_FOLDER = re.compile(r"(^|/)[_.][^/=]*/")
_GROUP_TOKEN = re.compile("[0-9a-f]{16}")
_GROUP_REPORTS = re.compile(r"reports/[^/]+/group-[0-9a-f]{16}\.json")
_CONTROL_NAME = re.compile(r"\.control\.(json|csv)$")


@dataclass(frozen=True)
class LandedObject:
    """One version of one key in the landing bucket.

    `version` is S3's version id, or the etag if the bucket has no versions: events and listings
    both have it, so both give the same identity. `size` is in bytes. `sequencer` orders the events
    of one key (empty if found by listing); `landed_at` is S3's time of the event or of the last
    modification, ISO 8601 in UTC.
    """

    bucket: str
    key: str
    version: str
    etag: str
    size: int
    sequencer: str = ""
    landed_at: str = ""

    @property
    def uri(self) -> str:
        """Return the object's address: `s3://bucket/key`."""
        return f"s3://{self.bucket}/{self.key}"


def object_version(version_id: str | None, etag: str) -> str:
    """Return the part of the identity that separates two versions of a key.

    Without versions in the bucket, S3 sends "null" or nothing as version: then it is the etag.
    """
    return etag if version_id in (None, "", "null") else version_id


def ingestion_id(landed: LandedObject) -> str:
    """Return the id of the one ingestion of a landed object: 32 hexadecimal digits.

    It depends on bucket, key and version alone, so it is the same for every event and listing, in
    any order.
    """
    identity = "\0".join((landed.bucket, landed.key, landed.version))
    return hashlib.sha256(identity.encode()).hexdigest()[:_ID_LENGTH]


@dataclass(frozen=True)
class IgnoreRule:
    """The reason why a key is ignored: a stable code for programs, the rule for people."""

    code: str
    sentence: str


def batch_name(key: str) -> str:
    """Return the name of the batch whose manifest has this key, "" for any other key."""
    name = batch_of(key)
    return name if key == f"{BATCHES}{name}/{MANIFEST}" else ""


def batch_of(key: str) -> str:
    """Return the name of the batch whose folder holds this key, "" for any other key."""
    matched = _BATCHED.fullmatch(key)
    return matched["name"] if matched else ""


def branch_name(table: str, key: str, ingestion: str, attempt: int) -> str:
    """Return an attempt's branch: `ingest/<table>/<readable part>-<id part>[-<attempt>]`.

    It has only letters, digits, `-`, `.` and `_`, a subset of Nessie's reference names, and neither
    `..` nor a trailing dot, which Nessie refuses.
    """
    stem = batch_name(key) or key.rsplit("/", 1)[-1]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:_READABLE_LENGTH].strip("-")
    name = f"{WRITTEN_BY_JOBS}{table}/{readable or 'file'}-{ingestion[:ID_PART]}"
    return name if attempt == 1 else f"{name}-{attempt}"


def group_branch(table: str, token: str) -> str:
    """Return the branch of a group of files that a shared run ingests together.

    The token is random, 16 hexadecimal digits: two runs that take the same files must not share a
    branch.
    """
    return f"{WRITTEN_BY_JOBS}{table}/group-{token}"


def is_group_branch(branch: str, table: str) -> bool:
    """Return if `group_branch` made this name for a group of the table's files."""
    token = branch.removeprefix(group_branch(table, ""))
    return branch == group_branch(table, token) and bool(_GROUP_TOKEN.fullmatch(token))


def fresh_branch(table: str, ingestion: str, token: str) -> str:
    """Return a fresh branch to publish from, `publish/<table>/<id part>-<token>`.

    The token is random: two processes that rebase at once must not share a branch.
    """
    return f"{_FRESH}{table}/{ingestion[:ID_PART]}-{token}"


def is_fresh(branch: str) -> bool:
    """Return if `fresh_branch` made this name: only its creator may use such a branch."""
    return branch.startswith(_FRESH)


def parse_branch_name(name: str) -> tuple[str, str, int]:
    """Return the table, the id part and the attempt in a branch name of `branch_name`.

    The id part is the first `ID_PART` digits of the ingestion id. Raises ValueError for any other
    name.
    """
    # An attempt has at most nine digits, so that an id part of digits alone is not read as one.
    match = re.fullmatch(r"ingest/([^/]+)/[^/]+-([0-9a-f]{12})(?:-([1-9][0-9]{0,8}))?", name)
    if not match:
        raise ValueError(f"not the name of one of our branches: {name!r}")
    return match[1], match[2], int(match[3] or 1)


def id_part(branch: str) -> str:
    """Return the id part in the name of a branch for one ingestion, "" in any other name."""
    matched = _OF_ONE.fullmatch(branch)
    return matched[1] or matched[2] if matched else ""


def run_name(ingestion: str, attempt: int) -> str:
    """Return the job run's name and client token: up to 64 of `[A-Za-z0-9._-]`, as EMR asks."""
    return f"{ingestion}-{attempt}"


def parse_run_name(name: str) -> tuple[str, int]:
    """Return the ingestion id and the attempt in a job run's name of `run_name`.

    Raises ValueError for any other name.
    """
    match = re.fullmatch(rf"([0-9a-f]{{{_ID_LENGTH}}})-([1-9][0-9]*)", name)
    if not match:
        raise ValueError(f"not the name of one of our job runs: {name!r}")
    return match[1], int(match[2])


def report_key(table: str, ingestion: str, attempt: int) -> str:
    """Return the key of an attempt's audit report in the lake bucket."""
    return f"reports/{table}/{ingestion}/{attempt}.json"


def group_reports_key(table: str, branch: str) -> str:
    """Return the key of the object that repeats all reports of a group, by the group's branch.

    "" for the branch of a single file. No such key has an ingestion's id in it.
    """
    key = f"reports/{table}/{branch.removeprefix(f'{WRITTEN_BY_JOBS}{table}/')}.json"
    return key if is_group_reports_key(key) else ""


def is_group_reports_key(key: str) -> bool:
    """Return if `group_reports_key` made this key."""
    return bool(_GROUP_REPORTS.fullmatch(key))


def parse_report_key(key: str) -> tuple[str, str, int]:
    """Return the table, the ingestion id and the attempt in a report's key of `report_key`.

    Raises ValueError for any other key.
    """
    match = re.fullmatch(rf"reports/([^/]+)/([0-9a-f]{{{_ID_LENGTH}}})/([1-9][0-9]*)\.json", key)
    if not match:
        raise ValueError(f"not the key of one of our reports: {key!r}")
    return match[1], match[2], int(match[3])


def ignore_rule(key: str) -> IgnoreRule | None:
    """Return the written rule by which a key is ignored, None for a key to ingest.

    Markers that tools leave beside data are ignored: folder markers (`…/`) and names that begin
    with `_` or `.` (`_SUCCESS`, `.part.crc`), which Spark and Hive hide for the same reason. So are
    control files (`orders.csv.control.json`), which describe the data beside them. Files in a
    batch's folder are ingested with its manifest, and never alone.
    """
    if batch_name(key):
        return None
    if _CONTROL_NAME.search(key):
        sentence = "names that end in .control.json or .control.csv tell of data, and are none"
        return IgnoreRule("IGNORED_KEY", sentence)
    if _IGNORED_NAME.search(key):
        sentence = "folder markers and names that begin with '_' or '.' are not data"
        return IgnoreRule("IGNORED_KEY", sentence)
    if _UNFINISHED_NAME.search(key):
        sentence = "names that end in ._COPYING_ are Hadoop's copies under way"
        return IgnoreRule("IGNORED_KEY", sentence)
    if batch_of(key):
        return IgnoreRule(BATCH_MEMBER, f"its batch's {MANIFEST} brings it in")
    return None


def hidden_rule(key: str, prefix: str) -> IgnoreRule | None:
    """Return the rule by which a key under its table's prefix is ignored, None without one.

    Folders that begin with `_` or `.` hold unfinished work and logs (Spark's `_temporary/` and
    `_spark_metadata/`, Hive's `.hive-staging…/`, Delta's `_delta_log/`): finished files are renamed
    out of them, and land once more. Spark's rule has the same exception, for folders that name a
    partition (`_year=2026/`). The prefix itself may contain any folder.
    """
    if not _HIDDEN_FOLDER.search(key.removeprefix(prefix)):
        return None
    return IgnoreRule("IGNORED_KEY", "folders that begin with '_' or '.' hold work in progress")
