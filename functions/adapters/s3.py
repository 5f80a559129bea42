"""Read and write the lake bucket outside its tables."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError

from functions.model.contract_terms import ContractTerms
from functions.model.notes.checkpoint import KEY as CHECKPOINT
from functions.model.notes.checkpoint import Checkpoint
from lakegate import times
from lakegate.audit.drift import Baselines, baselines_key
from lakegate.audit.report import AuditReport, from_lines
from lakegate.contract.claims import could_claim
from lakegate.contract.model import Contract, ContractInvalid, Problem, parse
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.job.change import CHANGES, Change, parse_change_key
from lakegate.job.landing import LandedObject, is_group_reports_key
from lakegate.job.upkeep import Comparison
from lakegate.limits import DEFAULTS, Limits
from lakegate.refusals import unavailable

_PRECONDITION_FAILED = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


class Overwritten(Transient):
    """Another process overwrote the object meanwhile."""


class Missing(LakegateError):
    """There is no such object."""


def body_of(answer: dict[str, Any], key: str, most: int) -> bytes:
    """Return an object's bytes. Raises Permanent TOO_LARGE above `most` bytes."""
    if answer["ContentLength"] > most:
        raise Permanent("TOO_LARGE", f"{key} is larger than the limit of {most:,} bytes")
    return bytes(answer["Body"].read())


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise S3's errors about `what` as Missing, Overwritten, or Transient STORAGE_UNAVAILABLE.

    Raises RightMissing where a right is missing.
    """
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchKey", "NoSuchVersion", "404"):
            raise Missing("MISSING_OBJECT", f"there is no object {what}") from error
        if error.response["Error"]["Code"] in _PRECONDITION_FAILED:
            raise Overwritten("OVERWRITTEN", f"{what} was overwritten meanwhile") from error
        message = f"S3 refused ({what}): {error}"
        raise unavailable(error, "STORAGE_UNAVAILABLE", message) from error
    except BotoCoreError as error:
        raise Transient("STORAGE_UNAVAILABLE", f"S3 did not answer ({what}): {error}") from error


CONTRACTS, YAML = "contracts/", (".yaml", ".yml")  # prefix and suffixes of contracts' keys
_REPORTS = "reports/"
_MOST_FOLDERS, _MOST_LIKELY = 100, 1000  # of reports that are listed one by one
_MOST_DELETED = 1000
_PARALLEL = 8  # reads at once; the client has ten connections
_LONGEST = 16 << 20  # bytes of an object without a limit of its own


@dataclass(frozen=True)
class StoredContract:
    """A contract, the version of its object in the lake bucket, and that object's text."""

    contract: Contract
    key: str
    version: str
    text: str = field(default="", compare=False, repr=False)

    def terms(self, *, is_change: bool) -> ContractTerms:
        """Return what an ingestion of a file, or of a change, keeps of it."""
        return ContractTerms.of(self.contract, self.key, self.version, is_change=is_change)

    @classmethod
    def read(
        cls, body: bytes, key: str, version: str, limits: Limits = DEFAULTS
    ) -> "StoredContract":
        """Return the contract in an object's bytes. Raises ContractInvalid."""
        try:
            text = body.decode()
            return cls(parse(text, key, limits), key, version, text)
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            raise ContractInvalid(key, [Problem(line, "", "is not UTF-8 text")]) from error


@dataclass(frozen=True)
class StoredObject:
    """An object in the lake bucket: its size in bytes, and when it was written."""

    key: str
    bytes: int
    modified: datetime


def contract_key(table: str) -> str:
    """Return the key of a table's contract in the lake bucket."""
    return f"{CONTRACTS}{table}.yaml"


def contracts_of(lake: "Lake", *tables: str) -> dict[str, StoredContract]:
    """Return the contracts in force by their tables, without other tables' invalid ones.

    Raises ContractInvalid when that of one of `tables` may be invalid, Permanent TOO_LARGE.
    """
    contracts = {stored.contract.table: stored for stored in lake.contracts(None)}
    for table in tables:
        if table not in contracts:
            lake.contracts(table.replace(".", "/") + "/")  # raises for its own
    return contracts


class Lake:
    """The objects beside the tables in the lake bucket."""

    def __init__(
        self,
        client: Any,
        bucket: str,
        clean_up: Callable[[], Any] | None = None,
        limits: Limits = DEFAULTS,
    ) -> None:
        """Use boto3's `s3` client; `clean_up` creates another client for deletions."""
        self._client = client
        self.limits = limits
        self._clean_up = clean_up or (lambda: client)
        self._parsed: dict[tuple[str, str], StoredContract] = {}
        self._contracts = self._list_contracts
        self.bucket = bucket

    def clock(self) -> datetime:
        """Return the time by S3's clock, in whole seconds: objects are as old as it says."""
        with translated(self.bucket):
            answer = self._client.head_bucket(Bucket=self.bucket)
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        if not date:
            raise Transient("STORAGE_UNAVAILABLE", "S3 did not say what time it is")
        return parsedate_to_datetime(date)

    def contracts(self, key: str | None = "") -> list[StoredContract]:
        """Return the contracts in force; fetch and parse each version once.

        Raises ContractInvalid when one of them is invalid, Permanent TOO_LARGE. With the key of a
        landed object, an invalid contract is skipped if it cannot be for that object's table; with
        None every invalid one.
        """
        listed = self._contracts()
        new = self._bodies([at for at in listed if at not in self._parsed])
        read = {at: self._parsed.get(at) or self._concerning(key, at[0], *new[at]) for at in listed}
        in_force = {at: stored for at, stored in read.items() if stored}
        self._parsed.clear()
        self._parsed.update(in_force)
        return list(in_force.values())

    def listed_once(self) -> Self:
        """Return the same lake, for a piece of work that lists the contracts at most once."""
        same = copy(self)
        same._contracts = cache(self._list_contracts)  # noqa: SLF001 - of the same class
        return same

    def _list_contracts(self) -> list[tuple[str, str]]:
        entries = [(each["Key"], each["ETag"]) for each in self._listed(CONTRACTS)]
        return [at for at in entries if at[0].endswith(YAML)]

    def contract_at(self, key: str, version: str) -> StoredContract:
        """Return one version of a contract; "" is the version in force.

        Raises Missing when that version is gone, ContractInvalid.
        """
        body, current = self._read(key, version, self.limits.largest_contract)
        return StoredContract.read(body, key, version or current, self.limits)

    def put_contract(self, contract: Contract, text: str) -> str:
        """Put a contract in force and return its key."""
        key = contract_key(contract.table)
        with translated(key):
            self._client.put_object(Bucket=self.bucket, Key=key, Body=text.encode())
        return key

    def put_change(self, change: Change) -> LandedObject:
        """Store a change, unless it is stored already; return its landed object."""
        body = change.to_json().encode()
        try:
            with translated(change.key):
                self._client.put_object(
                    Bucket=self.bucket, Key=change.key, Body=body, IfNoneMatch="*"
                )
        except Overwritten:
            self.change(change.key)  # raises where the other put failed
        return change.landed(self.bucket)

    def change(self, key: str) -> Change:
        """Return the change stored under `key`. Raises Missing, or Permanent BAD_CHANGE."""
        return Change.from_json(self._read(key)[0], key)

    def changes(self, table: str = "") -> Iterator[LandedObject]:
        """Yield every stored change, of one `table` or of all, as a landed object."""
        for entry in self._listed(f"{CHANGES}{table}/" if table else CHANGES):
            with suppress(ValueError):
                _, digest = parse_change_key(entry["Key"])
                at = times.text(entry["LastModified"])
                yield LandedObject(
                    self.bucket, entry["Key"], digest, "", entry["Size"], landed_at=at
                )

    def report(self, key: str) -> AuditReport:
        """Return an audit report. Raises Missing, or Permanent BAD_REPORT or TOO_LARGE."""
        return AuditReport.from_json(self._read(key, most=self.limits.largest_report)[0], key)

    def comparison(self, key: str) -> Comparison:
        """Return the report of a comparison. Raises Missing, or Permanent BAD_REPORT."""
        return Comparison.from_json(self._read(key)[0], key)

    def group_reports(self, key: str) -> dict[str, AuditReport]:
        """Return the reports that a group's object repeats, by key. Raises as `report`."""
        body, _ = self._read(key, most=self.limits.largest_report)
        return {each.key: each for each in from_lines(body, key)}

    def baselines(self, table: str) -> tuple[Baselines, str]:
        """Return a table's baselines and their etag; "" where there are none.

        Raises Permanent BAD_BASELINES.
        """
        body, etag = self._with_etag(baselines_key(table))
        return Baselines.from_json(body) if etag else Baselines(table), etag

    def put_baselines(self, baselines: Baselines, etag: str) -> None:
        """Replace the baselines that have this etag. Raises Overwritten if they changed."""
        self._replace(baselines_key(baselines.table), baselines.to_json(), etag)

    def checkpoint(self) -> tuple[Checkpoint | None, str]:
        """Return the checkpoint of the last reconcile run and its etag; None and "" without one.

        Raises Permanent BAD_CHECKPOINT.
        """
        body, etag = self._with_etag(CHECKPOINT)
        return Checkpoint.from_json(body) if etag else None, etag

    def put_checkpoint(self, checkpoint: Checkpoint, etag: str) -> None:
        """Replace the checkpoint that has this etag. Raises Overwritten if it changed."""
        self._replace(CHECKPOINT, checkpoint.to_json(), etag)

    def _with_etag(self, key: str) -> tuple[bytes, str]:
        """Return an object's bytes and its etag, "" without an object."""
        try:
            with translated(key):
                answer = self._client.get_object(Bucket=self.bucket, Key=key)
                return answer["Body"].read(), str(answer["ETag"])
        except Missing:
            return b"", ""

    def _replace(self, key: str, text: str, etag: str) -> None:
        """Replace the object that has this etag, "" for none. Raises Overwritten."""
        condition = {"IfMatch": etag} if etag else {"IfNoneMatch": "*"}
        with translated(key):
            self._client.put_object(Bucket=self.bucket, Key=key, Body=text.encode(), **condition)

    def is_gone(self, address: str) -> bool:
        """Return whether no data file exists at an address (`s3://…`, or as others write it)."""
        bucket, _, key = address.partition("://")[2].partition("/")
        try:
            with translated(address):
                self._client.head_object(Bucket=bucket, Key=key)
        except Missing:
            return True
        return False

    def reports(self, wanted: Mapping[str, Collection[str]] | None = None) -> Iterator[str]:
        """Yield the keys of all audit reports, or at least those of some ingestions.

        `wanted` has their ids, each with the tables that its reports are likely about: only their
        folders are listed, in all tables as long as these are few. What repeats a group's reports
        is none.
        """
        folders = [_REPORTS] if wanted is None else self._folders_of(wanted)
        keys = (each["Key"] for folder in folders for each in self._listed(folder))
        return (key for key in keys if not is_group_reports_key(key))

    def _folders_of(self, wanted: Mapping[str, Collection[str]]) -> list[str]:
        pages = self._pages(_REPORTS, Delimiter="/")
        tables = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", [])]
        if len(tables) * len(wanted) <= _MOST_FOLDERS:
            return [f"{table}{id_}/" for table in tables for id_ in wanted]
        likely = [f"{_REPORTS}{table}/{id_}/" for id_ in wanted for table in sorted(wanted[id_])]
        return likely if len(likely) <= _MOST_LIKELY else [_REPORTS]

    def reports_of(self, table: str, id_part: str) -> Iterator[str]:
        """Yield the keys of a table's reports about ingestions whose id begins like this."""
        yield from (each["Key"] for each in self._listed(f"{_REPORTS}{table}/{id_part}"))

    def _listed(self, prefix: str) -> Iterator[dict[str, Any]]:
        return (each for page in self._pages(prefix) for each in page.get("Contents", []))

    def _pages(self, prefix: str, **how: str) -> Iterator[dict[str, Any]]:
        with translated(prefix):
            paginator = self._client.get_paginator("list_objects_v2")
            yield from paginator.paginate(Bucket=self.bucket, Prefix=prefix, **how)

    def stored(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with `prefix`; a deleted one is none."""
        for entry in self._listed(prefix):
            yield StoredObject(entry["Key"], entry["Size"], entry["LastModified"])

    def delete_objects(self, keys: Sequence[str]) -> None:
        """Delete objects in the given order; ignore missing ones.

        A versioned bucket keeps each behind its delete marker, so it can be restored.
        """
        for start in range(0, len(keys), _MOST_DELETED):
            batch = [{"Key": key} for key in keys[start : start + _MOST_DELETED]]
            with translated(batch[0]["Key"]):
                answer = self._clean_up().delete_objects(
                    Bucket=self.bucket, Delete={"Objects": batch, "Quiet": True}
                )
            for refused in answer.get("Errors", []):
                message = f"S3 refused to delete {refused['Key']}: {refused['Code']}"
                error = ClientError({"Error": refused}, "DeleteObjects")
                raise unavailable(error, "STORAGE_UNAVAILABLE", message)

    def _bodies(self, new: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[bytes, str]]:
        """Return bytes and version of contracts, read together: a new process needs all of them."""
        read = partial(self._read, most=self.limits.largest_contract)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            return dict(zip(new, pool.map(read, [key for key, _ in new]), strict=True))

    def _concerning(
        self, landed: str | None, key: str, body: bytes, version: str
    ) -> StoredContract | None:
        try:
            return StoredContract.read(body, key, version, self.limits)
        except ContractInvalid:
            if landed is not None and could_claim(body, landed):
                raise
            return None

    def _read(self, key: str, version: str = "", most: int = _LONGEST) -> tuple[bytes, str]:
        """Return an object's bytes, at most `most`, and its version."""
        wanted = {"VersionId": version} if version else {}
        with translated(f"{key} (version {version})" if version else key):
            answer = self._client.get_object(Bucket=self.bucket, Key=key, **wanted)
            return body_of(answer, key, most), answer.get("VersionId", "")
