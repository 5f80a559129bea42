"""`lakegate snowflake ddl`: print the SQL that sets up Snowflake to read main."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from access.deployment.choice import find
from cli.console import terminal
from functions.adapters.all import Adapters
from functions.downstream import snowflake_sql as sql
from functions.downstream.snowflake_sql import Place
from lakegate.errors import LakegateError

_ROLE_ARN = re.compile(r"arn:aws(-[a-z]+)*:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)

snowflake = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Set up Snowflake to read main.",
)


@dataclass(frozen=True)
class Names:
    """The names of Snowflake objects, and the AWS role that Snowflake reads as."""

    place: Place
    role: str
    name: str
    aws_role: str


def _role_arn(given: str) -> str:
    if not _ROLE_ARN.fullmatch(given):
        example = "arn:aws:iam::123456789012:role/snowflake"
        raise typer.BadParameter(f"{given!r} is not the ARN of an IAM role, such as {example}")
    return given


@snowflake.callback()
def begin() -> None:
    """Set up Snowflake to read main."""


@snowflake.command("ddl")
def ddl_command(
    context: typer.Context,
    aws_role: Annotated[
        str, typer.Option(help="ARN of the IAM role that Snowflake reads as.", callback=_role_arn)
    ],
    table: Annotated[
        list[str] | None, typer.Option(help="Table. Default: all tables with a contract.")
    ] = None,
    database: Annotated[str, typer.Option(help="Existing database.")] = "LAKE",
    schema: Annotated[
        str, typer.Option(help="One schema for all tables. Default: one per namespace.")
    ] = "",
    role: Annotated[str, typer.Option(help="Snowflake role that Lakegate uses.")] = "LAKEGATE",
    name: Annotated[
        str, typer.Option(help="Name of the volume and of the integration.")
    ] = "LAKEGATE",
) -> None:
    """Print the SQL for external volume, catalog integration, schemas and tables; run nothing.

    The tables start with what main has now. Read the SQL before you run it.
    """
    adapters = find(context.obj).adapters()
    names = Names(Place(database, schema), role, name, aws_role)
    for statement in ddl(names, adapters.lake.bucket, _metadata(adapters, table or [])):
        terminal.raw(f"{statement};\n\n")


def ddl(names: Names, lake_bucket: str, metadata: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements in order; `metadata` maps each table to its metadata file on main.

    Only the owner of an Iceberg table can refresh it, so the role creates the tables itself. Raises
    Permanent NAME_TAKEN if two tables would have the same name.
    """
    sql.refuse_clashes(names.place, metadata)
    volume, role = sql.identifier(names.name), sql.identifier(names.role)
    database = sql.identifier(names.place.database)
    yield "USE ROLE ACCOUNTADMIN"
    yield f"CREATE ROLE IF NOT EXISTS {role}"
    yield sql.volume(names.name, lake_bucket, names.aws_role)
    yield sql.integration(names.name)
    yield f"GRANT USAGE ON EXTERNAL VOLUME {volume} TO ROLE {role}"
    yield f"GRANT USAGE ON INTEGRATION {volume} TO ROLE {role}"
    yield f"GRANT USAGE ON DATABASE {database} TO ROLE {role}"
    for namespace in sorted({table.rpartition(".")[0] for table in metadata}):
        there = names.place.schema_of(namespace)
        yield sql.schema(names.place, namespace)
        yield f"GRANT USAGE, CREATE ICEBERG TABLE ON SCHEMA {there} TO ROLE {role}"
    yield f"USE ROLE {role}"
    for table, file in sorted(metadata.items()):
        path = sql.relative(file, sql.base_url(lake_bucket))
        yield sql.iceberg_table(names.place, table, path, names.name, names.name)


def _metadata(adapters: Adapters, wanted: list[str]) -> dict[str, str]:
    """Return the tables' metadata files on main. Raises LakegateError NO_TABLE."""
    tip = adapters.catalog.tip()
    tables = wanted or [stored.contract.table for stored in adapters.lake.contracts()]
    files = {table: adapters.catalog.metadata(tip.hash, table) for table in tables}
    missing = [table for table, file in files.items() if not file]
    if missing and wanted:
        message = f"main has no table {', '.join(missing)}\nPublish a file of it first."
        raise LakegateError("NO_TABLE", message)
    if missing:
        terminal.err().print(f"left out, not on main yet: {', '.join(missing)}")
    return {table: file for table, file in files.items() if file}
