"""Snowflake's statements, with every name and text quoted (Snowflake, "Identifier requirements").

Names are in capitals, as Snowflake has those that are written without quotes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lakegate.errors import Permanent


@dataclass(frozen=True)
class Place:
    """Where in Snowflake tables are; without a `schema` each namespace has one of its own.

    In one for all the namespace begins a table's name, and a `$`, which no name of Lakegate's has,
    ends it: so no two tables are one, but for capitals.
    """

    database: str
    schema: str = ""

    def table(self, name: str) -> str:
        """What Snowflake calls Lakegate's table `namespace.table`."""
        namespace, _, table = name.rpartition(".")
        own = f"{namespace}${table}" if self.schema else table
        return f"{self.schema_of(namespace)}.{identifier(own.upper())}"

    def schema_of(self, namespace: str) -> str:
        """What it calls the schema of a namespace."""
        return f"{identifier(self.database)}.{identifier(self.schema or namespace.upper())}"


def refuse_clashes(place: Place, tables: Iterable[str]) -> None:
    """Raises Permanent NAME_TAKEN where Snowflake would take two tables for one."""
    known: dict[str, str] = {}
    for table in sorted(tables):
        other = known.setdefault(place.table(table), table)
        if other != table:
            message = f"{other} and {table} are one table to Snowflake, {place.table(table)}"
            raise Permanent("NAME_TAKEN", f"{message}: name one of them in another way")


def refresh(place: Place, table: str, path: str) -> str:
    """Have a table read the metadata file at a path relative to its external volume."""
    return f"ALTER ICEBERG TABLE {place.table(table)} REFRESH {text(path)}"


def volume(name: str, lake_bucket: str, aws_role: str) -> str:
    """Let Snowflake read the lake, and write nothing, as a role of AWS's."""
    where = [
        f"NAME = {text('lake')}",
        f"STORAGE_PROVIDER = {text('S3')}",
        f"STORAGE_BASE_URL = {text(base_url(lake_bucket))}",
        f"STORAGE_AWS_ROLE_ARN = {text(aws_role)}",
    ]
    made = f"CREATE EXTERNAL VOLUME IF NOT EXISTS {identifier(name)}"
    return f"{made}\n  STORAGE_LOCATIONS = (({' '.join(where)}))\n  ALLOW_WRITES = FALSE"


def integration(name: str) -> str:
    """Have tables be what their metadata files say."""
    made = f"CREATE CATALOG INTEGRATION IF NOT EXISTS {identifier(name)}"
    return f"{made}\n  CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = ICEBERG ENABLED = TRUE"


def schema(place: Place, namespace: str) -> str:
    """Have a place for the tables of a namespace."""
    return f"CREATE SCHEMA IF NOT EXISTS {place.schema_of(namespace)}"


def iceberg_table(place: Place, table: str, path: str, volume: str, integration: str) -> str:
    """Have a table that reads a metadata file, named as `refresh` does."""
    return (
        f"CREATE ICEBERG TABLE IF NOT EXISTS {place.table(table)}\n"
        f"  EXTERNAL_VOLUME = {text(volume)} CATALOG = {text(integration)}\n"
        f"  METADATA_FILE_PATH = {text(path)}"
    )


def relative(metadata: str, base: str) -> str:
    """The address of a metadata file relative to an external volume's base, which ends with `/`.

    Raises Permanent OUTSIDE_VOLUME where it does not lie there.
    """
    if not metadata.startswith(base):
        message = f"{metadata} is not under {base}, so Snowflake cannot read it"
        raise Permanent("OUTSIDE_VOLUME", message)
    return metadata.removeprefix(base)


def base_url(lake_bucket: str) -> str:
    """The base of the external volume: where all tables of the lake are."""
    return f"s3://{lake_bucket}/warehouse/"


def identifier(name: str) -> str:
    """A name in double quotes: within them only a double quote means something."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in single quotes: within them a quote and a backslash mean something."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
