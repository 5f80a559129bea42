"""Batches: from a manifest to files with their contracts, and their files on a fresh branch."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, StoredContract
from functions.model.ingestion import Ingestion, Intent
from lakegate.batch import BatchFile, Listed, folder, read_manifest, tables_of
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.landing import BATCH, LandedObject
from lakegate.text import one_line

# Characters of its parts' JSON: with the rest of what a job is told they are one argument, which
# has 10,280 at most (EMR Serverless API reference, SparkSubmit, entryPointArguments).
_LONGEST = 7_500


def told(adapters: Adapters, ingestion: Ingestion) -> dict[str, Any]:
    """What a batch's ingestion is to know of its files and contracts: its fields, by name.

    The files' versions are those that were there when the manifest landed, whenever that is asked.
    Only in a replay what was not there then is taken as it is now. Raises Permanent, with what to
    do, where the manifest is none, or a file or a contract is not there or will not do.
    """
    parts = ingestion.parts or _pinned(adapters, ingestion)
    stored = _contracts(adapters, ingestion, parts)
    parts = tuple(_under(stored[part.table], part) for part in parts)
    if len(json.dumps([asdict(part) for part in parts])) > _LONGEST:
        message = "the names of its files are too long together: give shorter ones, or make"
        raise Permanent("TOO_LARGE", f"{message} several batches of them")
    return {"table": BATCH, "parts": parts, **terms(stored.values())}


def terms(stored: Iterable[StoredContract]) -> dict[str, Any]:
    """What the contracts of a batch ask together, as fields of its ingestion."""
    contracts = [each.contract for each in stored]
    requirements_digest = json.dumps(
        sorted((each.table, each.requirements_digest) for each in contracts)
    )
    return {
        "requirements_digest": hashlib.sha256(requirements_digest.encode()).hexdigest()[:32],
        "channel": next((each.channel for each in contracts if each.channel), ""),
        "owner": next((each.owner for each in contracts if each.owner), ""),
        "checks_whole_table": any(each.checks_whole_table for each in contracts),
        "reads_others": any(each.reads_others for each in contracts),
    }


def current_requirements(adapters: Adapters, ingestion: Ingestion) -> str:
    """The digest of what the contracts of a batch ask by now. Raises Permanent."""
    return str(
        terms(_contracts(adapters, ingestion, ingestion.parts).values())["requirements_digest"]
    )


def enter_again(adapters: Adapters, ingestion: Ingestion, fresh: str) -> tuple[BatchFile, ...]:
    """Enter the files of all parts on a fresh branch; returns the parts as they lie there.

    Raises CannotRebase where a table on the branch cannot take them, or what the catalog answered.
    """
    for table in ingestion.tables:
        mine = [part.hash for part in ingestion.parts if part.table == table]
        sources = [Intent(ingestion.branch, hash_) for hash_ in dict.fromkeys(mine)]
        for error in adapters.tables().append_again(table, sources, fresh).values():
            raise error
    head = adapters.catalog.head(fresh)
    return tuple(replace(part, hash=head) for part in ingestion.parts)


def _pinned(adapters: Adapters, ingestion: Ingestion) -> tuple[BatchFile, ...]:
    """The files that a manifest names, in the versions that were there when it landed."""
    manifest = ingestion.landed
    try:
        text, at = adapters.landing.manifest(manifest)
    except Missing as error:
        message = f"the manifest is gone: {error.message}; upload it once more"
        raise Permanent("MANIFEST_GONE", message) from error
    listed = read_manifest(text, adapters.settings.limits)
    prefix = folder(manifest.key)
    there = _files_in(adapters, prefix, at)
    if ingestion.tries_from:  # a replay also takes files that were uploaded since
        there = adapters.landing.newest(prefix) | there
    found = [(each, there.get(prefix + each.key)) for each in listed]
    if missing := [each.key for each, landed in found if landed is None]:
        message = f"not in the manifest's folder when it landed: {one_line(', '.join(missing))}"
        todo = "upload the files first, then the manifest once more"
        raise Permanent("FILE_NOT_THERE", f"{message}; {todo}")
    return tuple(_part(adapters, each, landed) for each, landed in found if landed)


def _files_in(adapters: Adapters, prefix: str, at: str) -> dict[str, LandedObject]:
    """Return the newest version of each key under a prefix at a time."""
    return adapters.landing.newest(prefix, at)


def _part(adapters: Adapters, listed: Listed, landed: LandedObject) -> BatchFile:
    largest = adapters.settings.limits.largest_object
    if landed.size == 0:
        message = f"{one_line(listed.key)} has no bytes: was its upload cut short? Upload it, then"
        raise Permanent("EMPTY_OBJECT", f"{message} the manifest once more")
    if landed.size > largest:
        message = f"{one_line(listed.key)} has {landed.size:,} bytes, and {largest:,} at most are"
        raise Permanent("TOO_LARGE", f"{message} taken: split it, or raise the limit LargestObject")
    version, etag, size = landed.version, landed.etag, landed.size
    return BatchFile(
        listed.key, version, etag, size, listed.table, contract_key="", contract_version=""
    )


def _under(stored: StoredContract, part: BatchFile) -> BatchFile:
    return replace(part, contract_key=stored.key, contract_version=stored.version)


def _contracts(
    adapters: Adapters, ingestion: Ingestion, parts: Sequence[BatchFile]
) -> Mapping[str, StoredContract]:
    """The contract of each part's table: the one in force, or, where they are pinned, its own."""
    if ingestion.contract_pinned:
        return {part.table: _original(adapters, part) for part in parts}
    in_force = {stored.contract.table: stored for stored in adapters.lake.contracts()}
    tables = tables_of(parts)
    if unknown := [table for table in tables if table not in in_force]:
        message = f"the manifest names tables that have no contract: {one_line(', '.join(unknown))}"
        known = ", ".join(sorted(in_force)) or "none"
        raise Permanent("NO_CONTRACT", f"{message}; there are contracts for: {known}")
    for table in tables:
        _require_able(in_force[table].contract)
    return {table: in_force[table] for table in tables}


def _original(adapters: Adapters, part: BatchFile) -> StoredContract:
    try:
        return adapters.lake.contract_at(part.contract_key, part.contract_version)
    except Missing as error:
        message = f"the contract to replay it by is gone: {error.message}"
        raise Permanent("CONTRACT_GONE", message) from error


def _require_able(contract: Contract) -> None:
    """What depends on a key's or a file's past is not looked at for files of a batch."""
    asked = {"onNewVersion: replace": contract.on_new_version == "replace"}
    asked |= {"onDuplicate: hold": contract.on_duplicate == "hold"}
    for name, given in asked.items():
        if given:
            message = f"the contract of {contract.table} has {name}, which a batch cannot keep yet"
            raise Permanent("NOT_IN_BATCH", f"{message}: land its files by themselves")
