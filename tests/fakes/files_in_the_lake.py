"""The promise of deletion: no file is missing that somebody can read."""

from tests.fakes.catalog import FakeCatalog, data_address
from tests.fakes.deployment import TABLE, Deployment


def check_files(deployment: Deployment) -> None:
    """Raise AssertionError if a file is missing that main or a branch refers to.

    As long as upkeep has deleted none, this goes for all earlier states as well.
    """
    deleted = {f"s3://lake/{key}" for key in deployment.lake.deleted}
    catalog = deployment.catalog
    for name, head in catalog.references().items() if deleted else ():
        lost = _listed(catalog, head) & deleted
        assert not lost, f"{name} has lost {sorted(lost)}"
        if not deployment.ledger.upkeep().kept_since:
            _is_whole(deployment, head, deleted)


def _listed(catalog: FakeCatalog, at: str) -> set[str]:
    """Return the addresses of all files of the tables at a hash."""
    tables = catalog.tables_at(at).items()
    data = {data_address(name, table, file) for name, table in tables for file in table.files}
    return data | {table.metadata for _, table in tables}


def _is_whole(deployment: Deployment, head: str, deleted: set[str]) -> None:
    for change in deployment.catalog.changes(head, TABLE):
        if change.metadata:
            lost = deployment.tables.files(change.metadata).paths & deleted
            assert not lost, f"{change.hash} has lost {sorted(lost)}"
