"""What no trace of a lost ingestion tells: what contracts say of it, what a person asked for."""

from collections.abc import Mapping
from dataclasses import replace

from functions.batches import terms
from functions.ingestion import Ingestion
from functions.lake import StoredContract
from functions.storage import Missing
from functions.world import World
from lakegate.change import Change, parse_change_key
from lakegate.contract import ContractInvalid
from lakegate.errors import Permanent


def in_force(world: World) -> dict[str, StoredContract]:
    """The contracts in force by their tables."""
    try:
        return {stored.contract.table: stored for stored in world.lake.contracts()}
    except ContractInvalid:
        return {}  # alerts then go to the default channel


def with_terms(
    world: World, contracts: Mapping[str, StoredContract], ingestion: Ingestion
) -> Ingestion:
    """With what the contracts in force say of it, by their tables, and the change that it is of."""
    told = _together(contracts, ingestion) if ingestion.parts else ingestion
    return _asked(world, _under(contracts.get(ingestion.table), told))


def _under(stored: StoredContract | None, ingestion: Ingestion) -> Ingestion:
    """With what the contract in force says; its demands are other ones in another version."""
    if stored is None:
        return ingestion
    told = replace(
        ingestion,
        channel=stored.contract.channel,
        owner=stored.contract.owner,
        on_duplicate=stored.contract.on_duplicate,
        on_new_version=stored.contract.on_new_version,
    )
    if (stored.key, stored.version) != (told.contract_key, told.contract_version):
        return told
    contract = stored.contract
    return replace(
        told,
        demands=contract.demands,
        looks_beyond=contract.looks_beyond,
        reads_others=contract.reads_others or told.change is not None,
    )


def _together(contracts: Mapping[str, StoredContract], batch: Ingestion) -> Ingestion:
    """A batch with what its contracts say; they ask other things than is known in other versions.

    Its job then runs again where main refuses its branch.
    """
    stored = [contracts[table] for table in batch.tables if table in contracts]
    told = terms(stored)
    if set(batch.contracts) != {(each.key, each.version) for each in stored}:
        told["demands"] = "unknown"
    return replace(batch, **told)


def _asked(world: World, ingestion: Ingestion) -> Ingestion:
    """With the change that a person asked for, where it is one."""
    if ingestion.change or ingestion.landed.bucket != world.lake.bucket:
        return ingestion
    try:
        change = world.lake.change(ingestion.landed.key)
    except (Missing, Permanent) as error:  # it is a change all the same, and never a file
        change = Change(parse_change_key(ingestion.landed.key)[0], error.message, token="")
    return replace(ingestion, change=change, on_duplicate="publish", on_new_version="add")
