"""Write Snowflake's statements, with every name and text quoted ("Identifier requirements").

Names are in capitals, as Snowflake stores unquoted names.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lakegate.errors import Permanent


@dataclass(frozen=True)
class Place:
    """The database of tables; without a `schema` each namespace has its own schema.

    In a shared schema a table's name begins with its namespace and a `$`, which no name in Lakegate
    has. So different tables get different names, apart from case.
    """

    database: str
    schema: str = ""

    def table(self, name: str) -> str:
        """Return Snowflake's name of the table `namespace.table`."""
        namespace, _, table = name.rpartition(".")
        own = f"{namespace}${table}" if self.schema else table
        return f"{self.schema_of(namespace)}.{identifier(own.upper())}"

    def schema_of(self, namespace: str) -> str:
        """Return Snowflake's name of a namespace's schema."""
        return f"{identifier(self.database)}.{identifier(self.schema or namespace.upper())}"


def refuse_clashes(place: Place, tables: Iterable[str]) -> None:
    """Raise Permanent NAME_TAKEN where two tables have the same name in Snowflake."""
    known: dict[str, str] = {}
    for table in sorted(tables):
        other = known.setdefault(place.table(table), table)
        if other != table:
            message = (
                f"{other} and {table} have the same name in Snowflake, {place.table(table)}: "
                "rename one of them"
            )
            raise Permanent("NAME_TAKEN", message)


def refresh(place: Place, table: str, path: str) -> str:
    """Return the statement that refreshes a table to a metadata file, relative to its volume."""
    return f"ALTER ICEBERG TABLE {place.table(table)} REFRESH {text(path)}"


def volume(name: str, lake_bucket: str, aws_role: str) -> str:
    """Return the statement that lets Snowflake read, and not write, the lake with an AWS role."""
    where = [
        f"NAME = {text('lake')}",
        f"STORAGE_PROVIDER = {text('S3')}",
        f"STORAGE_BASE_URL = {text(base_url(lake_bucket))}",
        f"STORAGE_AWS_ROLE_ARN = {text(aws_role)}",
    ]
    made = f"CREATE EXTERNAL VOLUME IF NOT EXISTS {identifier(name)}"
    return f"{made}\n  STORAGE_LOCATIONS = (({' '.join(where)}))\n  ALLOW_WRITES = FALSE"


def integration(name: str) -> str:
    """Return the statement for a catalog integration that reads metadata files."""
    made = f"CREATE CATALOG INTEGRATION IF NOT EXISTS {identifier(name)}"
    return f"{made}\n  CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = ICEBERG ENABLED = TRUE"


def schema(place: Place, namespace: str) -> str:
    """Return the statement that creates the schema of a namespace."""
    return f"CREATE SCHEMA IF NOT EXISTS {place.schema_of(namespace)}"


def iceberg_table(place: Place, table: str, path: str, volume: str, integration: str) -> str:
    """Return the statement that creates a table from a metadata file, relative to its volume."""
    return (
        f"CREATE ICEBERG TABLE IF NOT EXISTS {place.table(table)}\n"
        f"  EXTERNAL_VOLUME = {text(volume)} CATALOG = {text(integration)}\n"
        f"  METADATA_FILE_PATH = {text(path)}"
    )


def relative(metadata: str, base: str) -> str:
    """Return a metadata file's address relative to the external volume's base, which ends in `/`.

    Raises Permanent OUTSIDE_VOLUME where it lies elsewhere.
    """
    if not metadata.startswith(base):
        message = f"{metadata} is outside Snowflake's external volume {base}: move the table there"
        raise Permanent("OUTSIDE_VOLUME", message)
    return metadata.removeprefix(base)


def base_url(lake_bucket: str) -> str:
    """Return the external volume's base, which contains all tables of the lake."""
    return f"s3://{lake_bucket}/warehouse/"


def identifier(name: str) -> str:
    """Return a name in double quotes, with its double quotes doubled."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text in single quotes, with quotes and backslashes escaped."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
