"""The promise of deletion: of what somebody can read no file is missing, of the rest none stays."""

from lakegate.audit.audit_tables import TABLES
from tests.fakes.catalog import FakeCatalog, data_address
from tests.fakes.deployment import TABLE, Deployment


def check_files(deployment: Deployment) -> None:
    """Raise AssertionError if a file is missing that main or a branch refers to.

    As long as upkeep has deleted none, this goes for all earlier states as well.
    """
    gone = deleted(deployment)
    catalog = deployment.catalog
    for name, head in catalog.references().items() if gone else ():
        lost = listed(catalog, head) & gone
        assert not lost, f"{name} has lost {sorted(lost)}"
        if not deployment.ledger.upkeep().kept_since:
            _is_whole(deployment, head, gone)


def deleted(deployment: Deployment) -> set[str]:
    """Return the addresses of the files that upkeep has deleted."""
    return {f"s3://lake/{key}" for key in deployment.lake.deleted}


def listed(catalog: FakeCatalog, at: str) -> set[str]:
    """Return the addresses of all files of the tables at a hash."""
    tables = catalog.tables_at(at).items()
    data = {data_address(name, table, file) for name, table in tables for file in table.files}
    return data | {table.metadata for _, table in tables}


def orphans(deployment: Deployment) -> set[str]:
    """Return the addresses of the data files that a job wrote, and that no commit ever named."""
    return _data_files(deployment) - deployment.catalog.named


def check_only_needed_left(deployment: Deployment) -> None:
    """Raise AssertionError unless the lake has exactly the data files that somebody can read.

    That is so once nothing has happened for days but upkeep. Results may stay of attempts that the
    ledger does not know, as it may have lost them.
    """
    catalog = deployment.catalog
    open_ = [each for each in deployment.ledger.all() if each.is_open]
    decided = {at for each in open_ for at in (each.base_hash, each.audited_hash)}
    heads = [*catalog.references().values(), *filter(catalog.knows, decided)]
    needed = {each for head in heads for each in listed(catalog, head) if "/data/" in each}
    found = _data_files(deployment) - _results_of_unknown(deployment)
    assert found == needed, f"left: {sorted(found - needed)}, missing: {sorted(needed - found)}"


def _results_of_unknown(deployment: Deployment) -> set[str]:
    known = {f"{i.id}-{n + 1}" for i in deployment.ledger.all() for n in range(i.attempt)}
    folders = tuple(table.files("lake") for table in TABLES)
    results = (each for each in _data_files(deployment) if each.startswith(folders))
    return {each for each in results if each.rpartition("/")[2].rpartition("-")[0] not in known}


def _data_files(deployment: Deployment) -> set[str]:
    return {f"s3://lake/{key}" for key in deployment.lake.data if "/data/" in key}


def _is_whole(deployment: Deployment, head: str, gone: set[str]) -> None:
    for commit in deployment.catalog.log_of(head):
        if metadata := deployment.catalog.metadata(commit.hash, TABLE):
            lost = deployment.tables.files(metadata).paths & gone
            assert not lost, f"{commit.hash} has lost {sorted(lost)}"
