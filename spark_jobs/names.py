"""Names as Spark SQL reads them."""

from spark_jobs.session import CATALOG


def quoted(name: str) -> str:
    """A name as Spark SQL reads it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def table_name(table: str, catalog: str = CATALOG) -> str:
    """The table's name in Spark SQL, in the catalog of the run's branch or in another one."""
    return ".".join(quoted(part) for part in (catalog, *table.split(".")))
