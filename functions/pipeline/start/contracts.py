"""Find the contract of an ingestion, and the terms that the ingestion keeps of it."""

from collections.abc import Iterable

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, StoredContract, contracts_of
from functions.model.ingestion import Ingestion
from functions.pipeline.start import batches
from functions.telemetry import logger
from lakegate.contract.claims import claiming
from lakegate.contract.entry import entry_changes
from lakegate.errors import Permanent
from lakegate.job.change import Change
from lakegate.job.landing import batch_name, hidden_rule


class Hidden(Permanent):
    """The landed object is a tool's work in progress, and is ignored."""


def with_terms(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return the ingestion with the terms of its contract, and with its batch's files or change.

    Raise Hidden or another Permanent where it cannot be ingested.
    """
    landed = ingestion.landed
    if landed.bucket != adapters.lake.bucket and batch_name(landed.key):
        return batches.with_terms(adapters, ingestion)
    known = ingestion.but(change=_requested_change(adapters, ingestion))
    stored = contract_for(adapters, known)
    rule = hidden_rule(landed.key, stored.contract.landing_prefix)
    if rule and not known.change:
        raise Hidden(rule.code, rule.sentence)
    return known.but(terms=stored.terms(is_change=known.change is not None))


def current_requirements(adapters: Adapters, ingestion: Ingestion) -> str:
    """Return the digest of what its contract requires of the rows now, "" without a contract."""
    try:
        if ingestion.parts:
            return batches.current_requirements(adapters, ingestion)
        return contract_for(adapters, ingestion).contract.requirements_digest
    except Permanent:
        return ""


def outdated(adapters: Adapters, ingestions: Iterable[Ingestion]) -> str:
    """Return what decides otherwise now where their rows go than in their contracts; "" if nothing.

    Ask after their branch was created. A file that was published under a newer contract is then on
    that branch, and its contract is found here; or it is not, and main refuses the branch.
    """
    agreed = {each: None for ingestion in ingestions for each in ingestion.contracts}
    changes = (change for key, version in agreed for change in _changes(adapters, key, version))
    return ", ".join(dict.fromkeys(changes))


def _changes(adapters: Adapters, key: str, version: str) -> tuple[str, ...]:
    """Return what the contract in force under a key changed since a version of it."""
    if not key:
        return ("its contract is unknown",)  # of an entry that was restored from its report
    try:
        now = adapters.lake.contract_at(key, "")
        if now.version == version:
            return ()
        return entry_changes(adapters.lake.contract_at(key, version).contract, now.contract)
    except (Missing, Permanent) as error:
        logger.warning("contracts cannot be compared", extra={"why": error.message})
        return ("its contract is gone",)


def _requested_change(adapters: Adapters, ingestion: Ingestion) -> Change | None:
    """Return the change that was requested, None for a file."""
    if ingestion.change or ingestion.landed.bucket != adapters.lake.bucket:
        return ingestion.change
    try:
        return adapters.lake.change(ingestion.landed.key)
    except Missing as error:
        message = f"the requested change is gone: {error.message}; request it once more"
        raise Permanent("CHANGE_GONE", message) from error


def contract_for(adapters: Adapters, ingestion: Ingestion) -> StoredContract:
    """Return the contract that a job run of it would use now. Raise Permanent without one."""
    if ingestion.contract_pinned:
        return batches.original(adapters, *ingestion.terms.contract)
    if change := ingestion.change:
        in_force = contracts_of(adapters.lake, change.table)
        if change.table in in_force:
            return in_force[change.table]
        message = f"no contract is in force for {change.table}, so nothing could audit a change"
        raise Permanent("NO_CONTRACT", message)
    key = ingestion.landed.key
    stored = {s.contract.table: s for s in adapters.lake.contracts(key)}
    contract = claiming([s.contract for s in stored.values()], key)
    return stored[contract.table]
