"""Names as Spark SQL reads them."""

from lakegate.columns import quoted
from spark_jobs.session import CATALOG

__all__ = ["quoted", "table_name"]


def table_name(table: str, catalog: str = CATALOG) -> str:
    """The table's name in Spark SQL, in the catalog of the run's branch or in another one."""
    return ".".join(quoted(part) for part in (catalog, *table.split(".")))
