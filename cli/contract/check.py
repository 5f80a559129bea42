"""`lakegate contract`: draft, check, push and withdraw contracts."""

import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from access import contract_check
from access.contract_check import Checked, checked, clash
from access.deployment import find
from access.editor_schema import contract_schema
from cli.console import json_output, terminal
from cli.console.options import AsJson
from cli.contract import ci_output
from cli.contract.ci_output import AsFormat, Format
from cli.contract.local_test import try_out
from functions.adapters.s3 import CONTRACTS, Lake, StoredContract, contract_key
from lakegate.contract.claims import refuse_clashes
from lakegate.contract.model import Contract, ContractInvalid
from lakegate.errors import LakegateError
from lakegate.limits import Limits
from lakegate.text import one_line

contract = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Draft, check and push contracts.",
)
contract.command("test")(try_out)


@contract.command()
def check(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…", help="Contract files, or directories of them.", exists=True
        ),
    ],
    as_json: AsJson = False,
    as_format: AsFormat = Format.TEXT,
) -> None:
    """Check contracts against the standard and Lakegate's rules; exits 1 on problems.

    Reads local files only.
    """
    ci_output.refuse_both(as_format, as_json=as_json)
    limits = Limits.of(os.environ)
    found = [checked(file, limits) for file in contract_files(paths)]
    clashing = clash(found)
    if as_json or as_format is not Format.TEXT:
        results = ci_output.of_contracts(found, clashing)
        document = json_output.text(_document(found, clashing))
        typer.echo(document if as_json else ci_output.text(results, as_format))
        raise typer.Exit(1 if clashing or any(each.refusal for each in found) else 0)
    for each in found:
        if each.contract:
            many = len(each.contract.checks)
            terminal.out().print(f"{each.file}: {each.contract.table}, {many} checks")
        for hint in each.hints:
            terminal.out().print(f"{each.file}: hint: {hint}", soft_wrap=True)
    _raise_refusals(found)
    if clashing:
        raise clashing


@contract.command()
def suggest(
    data: Annotated[Path, typer.Argument(help="Sample of the data.", exists=True, dir_okay=False)],
    table: Annotated[
        str, typer.Option(help="<namespace>.<table>. Default: from the file name.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="New file to write to.")] = None,
) -> None:
    """Draft a contract from a sample of the data, with limits that all its rows meet."""
    text = suggested(data, table)
    if out is None:
        terminal.raw(text)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LakegateError("NOT_WRITTEN", f"cannot write {out}: {error}") from error
    terminal.err().print(f"wrote {out}")


def suggested(data: Path, table: str = "") -> str:
    """Return the text of a contract for files like `data`, which accepts `data` itself.

    Raises LakegateError if the file cannot be read, or ContractInvalid if no contract can describe
    it, for example with a column without a name.
    """
    import duckdb

    from cli.contract.suggest.trial import tried

    with duckdb.connect() as connection:
        text = tried(connection, data, table or f"drafts.{_plain(data.name)}")
    contract_check.check(text, f"the draft from {data}")
    return text


def _plain(name: str) -> str:
    """Return a table name made of a file's name."""
    words = re.findall(r"[a-z0-9]+", name.lower().partition(".")[0])
    return f"t_{'_'.join(words)}" if not words or words[0][0].isdigit() else "_".join(words)


@contract.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of contracts, by which editors complete and check them."""
    terminal.raw(json.dumps(contract_schema(), indent=2) + "\n")


@contract.command("list")
def list_command(context: typer.Context, as_json: AsJson = False) -> None:
    """List the contracts in force: table, version, landing prefix, format, checks, owner."""
    found = in_force(find(context.obj).adapters().lake)
    if as_json:
        typer.echo(json_output.text([_listed(each) for each in found]))
        return
    if not found:
        terminal.err().print("No contract is in force: `lakegate contract push` puts them in force")
        return
    made = terminal.table(
        "table", "version", "files under", "format", "checks", "owner", right=["checks"]
    )
    for each in found:
        one = {**_listed(each), "checks": f"{len(each.contract.checks):,}"}
        columns = ("table", "version", "prefix", "format", "checks", "owner")
        made.add_row(*(one_line(str(one[name])) or "-" for name in columns))
    terminal.out().print(made)


def in_force(lake: Lake) -> list[StoredContract]:
    """Return the contracts in force, by table; what is no contract is left out."""
    return sorted(lake.contracts(None), key=lambda each: each.contract.table)


def _listed(stored: StoredContract) -> dict[str, Any]:
    one = stored.contract
    return {
        "table": one.table,
        "id": one.id,
        "version": one.version,
        "key": stored.key,
        "object_version": stored.version,
        "prefix": one.landing_prefix,
        "format": one.format,
        "checks": [check.id for check in one.checks],
        "owner": one.owner,
        "channel": one.channel,
    }


@contract.command("push")
def push_command(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="Directory of contracts.", exists=True, file_okay=False)
    ] = Path("contracts"),
) -> None:
    """Check all contracts of a directory, and put them in force for the next files."""
    push(find(context.obj).adapters().lake, [directory], terminal.err().print)


@contract.command("withdraw")
def withdraw_command(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="TABLE", help="Table of the contract, or the contract's key.")
    ],
) -> None:
    """Take a contract out of force: new files of its table cause alerts; its rows stay."""
    terminal.err().print(withdraw(find(context.obj).adapters().lake, name), soft_wrap=True)


def withdraw(lake: Lake, name: str) -> str:
    """Take the contract of a table, or the text under a key, out of force; return a message.

    An invalid contract can be withdrawn too. Raises Missing if there is none of that name.
    """
    key = name if name.startswith(CONTRACTS) else contract_key(name)
    with suppress(ContractInvalid):
        lake.contract_at(key, "")
    lake.delete_objects([key])
    return f"{key} is out of force; {lake.bucket} keeps its text as an older version"


def push(lake: Lake, paths: Iterable[Path], tell: Callable[[str], None]) -> None:
    """Put contract files, and all of directories, in force; none of them if one is invalid.

    The lake's limits bound their size. Raises LakegateError with every problem in every file.
    """
    found = [checked(file, lake.limits) for file in contract_files(paths)]
    _raise_refusals(found)
    given = {each.file: (each.text, each.contract) for each in found if each.contract}
    in_force = _in_force(lake)
    tables = {contract.table for _, contract in given.values()}
    others = {f"the pushed {t}": c for t, c in in_force.items() if t not in tables}
    refuse_clashes({**others, **{str(file): contract for file, (_, contract) in given.items()}})
    for file, (text, contract) in given.items():
        if contract.table in in_force and in_force[contract.table].sha256 == contract.sha256:
            tell(f"contract {contract.table} is in force already")
        else:
            lake.put_contract(contract, text)
            tell(f"contract {contract.table} put in force, from {file}")


def refuse_invalid(paths: Iterable[Path], limits: Limits) -> None:
    """Raise LakegateError with every problem in every contract, or why they clash."""
    found = [checked(file, limits) for file in contract_files(paths)]
    _raise_refusals(found)
    if clashing := clash(found):
        raise clashing


def contract_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the *.yaml and *.yml files in directories, each once.

    Raises LakegateError NO_CONTRACTS for a directory without any.
    """
    files: list[Path] = []
    for path in paths:
        within = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
        if not within:
            raise LakegateError("NO_CONTRACTS", f"no *.yaml file in {path}")
        files += within
    return list(dict.fromkeys(files))


def _raise_refusals(found: Iterable[Checked]) -> None:
    refusals = [each.refusal for each in found if each.refusal]
    if refusals:
        raise LakegateError("CONTRACT_INVALID", "\n".join(refusals))


def _document(found: Iterable[Checked], clashing: LakegateError | None) -> dict[str, Any]:
    return {
        "contracts": [_one(each) for each in found],
        "clash": clashing.message if clashing else None,
    }


def _one(each: Checked) -> dict[str, Any]:
    return {
        "file": str(each.file),
        "table": each.contract.table if each.contract else None,
        "checks": [check.id for check in each.contract.checks] if each.contract else [],
        "problems": [asdict(problem) for problem in each.problems],
        "hints": [asdict(hint) for hint in each.hints],
    }


def _in_force(lake: Lake) -> dict[str, Contract]:
    try:
        return {stored.contract.table: stored.contract for stored in lake.contracts()}
    except ContractInvalid:
        return {}  # one of them has to be replaced: this push may be what does it
