"""Find the contract of an ingestion, and the terms that the ingestion keeps of it."""

from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, StoredContract
from functions.model.ingestion import Ingestion
from functions.pipeline import batches
from lakegate.change import Change
from lakegate.contract.claims import claiming
from lakegate.errors import Permanent
from lakegate.landing import hidden_rule


class Hidden(Permanent):
    """What landed is work in progress of some tool's, and not to be ingested."""


def terms_of(adapters: Adapters, ingestion: Ingestion) -> dict[str, Any]:
    """What the ingestion of one file, or of a change, is to know of its contract."""
    change = _asked(adapters, ingestion)
    stored = _contract(adapters, ingestion, change)
    contract = stored.contract
    rule = hidden_rule(ingestion.landed.key, contract.landing_prefix)
    if rule and not change:
        raise Hidden(rule.code, rule.sentence)
    return {
        "table": contract.table,
        "contract_key": stored.key,
        "contract_version": stored.version,
        "requirements_digest": contract.requirements_digest,
        "channel": contract.channel,
        "owner": contract.owner,
        "on_duplicate": "publish" if change else contract.on_duplicate,
        "on_new_version": "add" if change else contract.on_new_version,
        "change": change,
        "checks_whole_table": contract.checks_whole_table,
        "reads_others": change is not None or contract.reads_others,
    }


def _asked(adapters: Adapters, ingestion: Ingestion) -> Change | None:
    """The change that a person asked for, None where a file landed."""
    if ingestion.change or ingestion.landed.bucket != adapters.lake.bucket:
        return ingestion.change
    try:
        return adapters.lake.change(ingestion.landed.key)
    except Missing as error:
        message = f"what was asked for is gone: {error.message}; ask for it once more"
        raise Permanent("CHANGE_GONE", message) from error


def _contract(adapters: Adapters, ingestion: Ingestion, change: Change | None) -> StoredContract:
    if ingestion.contract_pinned:
        return _original(adapters, ingestion)
    key = "" if change else ingestion.landed.key
    stored = {s.contract.table: s for s in adapters.lake.contracts(key)}
    if change and change.table in stored:
        return stored[change.table]
    if change:
        message = f"no contract is in force for {change.table}, so nothing could audit a change"
        raise Permanent("NO_CONTRACT", message)
    contract = claiming([s.contract for s in stored.values()], key)
    return stored[contract.table]


def _original(adapters: Adapters, ingestion: Ingestion) -> StoredContract:
    try:
        return adapters.lake.contract_at(ingestion.contract_key, ingestion.contract_version)
    except Missing as error:
        message = f"the contract to replay it by is gone: {error.message}"
        raise Permanent("CONTRACT_GONE", message) from error


def contract_for(adapters: Adapters, ingestion: Ingestion) -> StoredContract:
    """The contract that a job run of it would go by now. Raises Permanent where there is none."""
    return _contract(adapters, ingestion, ingestion.change)


def current_requirements(adapters: Adapters, ingestion: Ingestion) -> str:
    """The digest of what its contract asks of the rows by now, "" where none can be told."""
    try:
        if ingestion.parts:
            return batches.current_requirements(adapters, ingestion)
        return _contract(adapters, ingestion, ingestion.change).contract.requirements_digest
    except Permanent:
        return ""
