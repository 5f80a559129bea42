"""Read a batch's manifest, pin its files and contracts, and register its files again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, StoredContract, contracts_of
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion
from functions.model.intent import Intent
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.job.batch import BatchFile, Listed, folder, read_manifest, tables_of
from lakegate.job.landing import LandedObject
from lakegate.text import few, one_line

# Characters of the JSON of its files and its key: with the rest of the job's specification it is
# one argument, which has 10,280 at most (EMR Serverless API reference, SparkSubmit,
# entryPointArguments).
_LONGEST = 7_500


def with_terms(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return a batch's ingestion with its files, and with the terms of their contracts.

    The files' versions are those that were there when the manifest landed; a replay also takes
    files that were uploaded since. Raise Permanent, with what to do, where the manifest cannot be
    read, or where a file or a contract is missing or does not fit.
    """
    parts = ingestion.parts or _pinned(adapters, ingestion)
    stored = _contracts(adapters, ingestion, parts)
    by = [(part, stored[part.table]) for part in parts]
    parts = tuple(replace(p, contract_key=c.key, contract_version=c.version) for p, c in by)
    named = [ingestion.landed.key, *(asdict(part) for part in parts)]
    if len(json.dumps(named)) > _LONGEST:
        message = (
            "the names of its files are too long together: give shorter ones, "
            "or make several batches of them"
        )
        raise Permanent("TOO_LARGE", message)
    terms = ContractTerms.of_batch([each.contract for each in stored.values()])
    return ingestion.but(terms=terms, parts=parts)


def current_requirements(adapters: Adapters, ingestion: Ingestion) -> str:
    """Return the digest of what the contracts of a batch require now. Raise Permanent."""
    stored = _contracts(adapters, ingestion, ingestion.parts)
    terms = ContractTerms.of_batch([each.contract for each in stored.values()])
    return terms.requirements_digest


def register_again(adapters: Adapters, ingestion: Ingestion, fresh: str) -> tuple[BatchFile, ...]:
    """Register the files of a batch on a fresh branch; return them with their new hash.

    Raise CannotRebase if a table cannot take them, or the catalog's error.
    """
    for table in ingestion.tables:
        mine = [part.hash for part in ingestion.parts if part.table == table]
        sources = [Intent(ingestion.branch, hash_) for hash_ in dict.fromkeys(mine)]
        for error in adapters.tables().append_again(table, sources, fresh).values():
            raise error
    head = adapters.catalog.head(fresh)
    return tuple(replace(part, hash=head) for part in ingestion.parts)


def _pinned(adapters: Adapters, ingestion: Ingestion) -> tuple[BatchFile, ...]:
    """Return the files that a manifest names, in the versions that were there when it landed."""
    manifest = ingestion.landed
    try:
        text, at = adapters.landing.manifest(manifest)
    except Missing as error:
        message = f"the manifest is gone: {error.message}; upload it once more"
        raise Permanent("MANIFEST_GONE", message) from error
    listed = read_manifest(text, adapters.settings.limits)
    prefix = folder(manifest.key)
    keys = [prefix + each.key for each in listed]
    there = _newest(adapters, manifest.bucket, keys, at=at)
    if ingestion.tries_from:  # a replay also takes files that were uploaded since
        there = _newest(adapters, manifest.bucket, keys) | there
    pairs = [(each, there.get(key)) for each, key in zip(listed, keys, strict=True)]
    if missing := [each.key for each, landed in pairs if landed is None]:
        message = (
            f"not in the manifest's folder when it landed: {one_line(', '.join(missing))}; "
            "upload the files first, then the manifest once more"
        )
        raise Permanent("FILE_NOT_THERE", message)
    return tuple(_part(adapters, each, landed) for each, landed in pairs if landed)


def _newest(
    adapters: Adapters, bucket: str, keys: Sequence[str], **then: str
) -> dict[str, LandedObject]:
    """Return the newest versions of these keys: a folder may have far more files than a batch."""
    found = (adapters.landing.newest(key, bucket=bucket, **then) for key in keys)
    return {key: landed for each in found for key, landed in each.items()}


def _part(adapters: Adapters, listed: Listed, landed: LandedObject) -> BatchFile:
    largest = adapters.settings.limits.largest_object
    if landed.size == 0:
        message = (
            f"{one_line(listed.key)} has no bytes: was its upload cut short? "
            "Upload it, then the manifest once more"
        )
        raise Permanent("EMPTY_OBJECT", message)
    if landed.size > largest:
        message = (
            f"{one_line(listed.key)} has {landed.size:,} bytes, and {largest:,} at most are taken: "
            "split it, or raise the limit LargestObject"
        )
        raise Permanent("TOO_LARGE", message)
    version, etag, size = landed.version, landed.etag, landed.size
    return BatchFile(
        listed.key, version, etag, size, listed.table, contract_key="", contract_version=""
    )


def _contracts(
    adapters: Adapters, ingestion: Ingestion, parts: Sequence[BatchFile]
) -> Mapping[str, StoredContract]:
    """Return the contract of each table: the pinned version, or the one in force."""
    if ingestion.contract_pinned:
        return {
            part.table: original(adapters, part.contract_key, part.contract_version)
            for part in parts
        }
    tables = tables_of(parts)
    in_force = contracts_of(adapters.lake, *tables)
    if unknown := [table for table in tables if table not in in_force]:
        known = few(sorted(in_force))
        message = (
            f"the manifest names tables that have no contract: {one_line(', '.join(unknown))}; "
            f"there are contracts for: {known}"
        )
        raise Permanent("NO_CONTRACT", message)
    for table in tables:
        _require_allowed(in_force[table].contract, ingestion.landed.key)
        _require_able(in_force[table].contract)
    return {table: in_force[table] for table in tables}


def original(adapters: Adapters, key: str, version: str) -> StoredContract:
    """Return the version of a contract to replay by. Raise Permanent CONTRACT_GONE."""
    try:
        return adapters.lake.contract_at(key, version)
    except Missing as error:
        message = f"the contract to replay it by is gone: {error.message}"
        raise Permanent("CONTRACT_GONE", message) from error


def _require_allowed(contract: Contract, manifest: str) -> None:
    """Raise Permanent for a table whose contract does not let this manifest bring its files."""
    if not manifest.startswith(contract.batches):
        allowed = ", ".join(contract.batches) or "none"
        message = (
            f"the contract of {contract.table} does not allow this batch: manifests that may bring "
            f"files of it begin with: {allowed}. Its owner sets that in the property batches "
            "(batches: allowed, or a list of prefixes); then replay the batch"
        )
        raise Permanent("BATCH_NOT_ALLOWED", message)


def _require_able(contract: Contract) -> None:
    """Raise Permanent for settings of comparison with earlier files, which a batch cannot keep."""
    asked = {"onNewVersion: replace": contract.on_new_version == "replace"}
    asked |= {"onDuplicate: hold": contract.on_duplicate == "hold"}
    mode = contract.write_mode
    asked |= {f"writeMode: {mode.name}": bool(mode)}
    for name, given in asked.items():
        if given:
            message = (
                f"the contract of {contract.table} has {name}, which a batch cannot keep yet: "
                "land its files by themselves"
            )
            raise Permanent("NOT_IN_BATCH", message)
