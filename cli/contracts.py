"""`lakegate contract`: its commands, and those that check contracts and put them in force."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from access.deployment import find
from cli import documents, terminal
from cli.contract_check import Checked, checked, clash
from cli.contract_suggest import suggest
from cli.contract_test import try_out
from functions.adapters.s3 import CONTRACTS, Lake, contract_key
from lakegate.contract.claims import refuse_clashes
from lakegate.contract.model import Contract, ContractInvalid
from lakegate.contract.reading.yaml import Problem
from lakegate.errors import LakegateError
from lakegate.limits import Limits

contract = typer.Typer(no_args_is_help=True, help="Write contracts, and put them in force.")
contract.command()(suggest)
contract.command("test")(try_out)


@contract.command()
def check(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Contracts, or directories of them.", exists=True),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check contracts against the standard and against Lakegate; nothing is sent anywhere."""
    limits = Limits.of(os.environ)
    found = [checked(file, limits) for file in contract_files(paths)]
    clashing = clash(found)
    if as_json:
        typer.echo(documents.text(_document(found, clashing)))
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


@contract.command("push")
def push_command(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="Where they are.", exists=True, file_okay=False)
    ] = Path("contracts"),
) -> None:
    """Check all contracts of a directory and put them in force: the next file is judged by them."""
    push(find(context.obj).adapters().lake, [directory], terminal.err().print)


@contract.command("withdraw")
def withdraw_command(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TABLE", help="Whose contract, or its key.")],
) -> None:
    """Take a contract out of force: files of its table are alerted from now on, its rows stay."""
    terminal.err().print(withdraw(find(context.obj).adapters().lake, name), soft_wrap=True)


def withdraw(lake: Lake, name: str) -> str:
    """Take the contract of a table, or the text under a key, out of force; says what follows.

    One that is refused can be withdrawn too. Raises Missing where there is none of that name.
    """
    key = name if name.startswith(CONTRACTS) else contract_key(name)
    with suppress(ContractInvalid):
        lake.contract_at(key, "")
    lake.delete_objects([key])
    return f"{key} is out of force; its text stays an older version in {lake.bucket}"


def push(lake: Lake, paths: Iterable[Path], tell: Callable[[str], None]) -> None:
    """Put contracts, and all of directories, in force; none when one of them cannot stand.

    They may be as large as the lake's limits let them. Raises LakegateError with every problem in
    every file.
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
    """Raises LakegateError with every problem in every contract, or why they clash."""
    found = [checked(file, limits) for file in contract_files(paths)]
    _raise_refusals(found)
    if clashing := clash(found):
        raise clashing


def contract_files(paths: Iterable[Path]) -> list[Path]:
    """The files, and those with the ending .yaml or .yml in directories, each once.

    Raises LakegateError NO_CONTRACTS for a directory that has none.
    """
    files: list[Path] = []
    for path in paths:
        within = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
        if not within:
            raise LakegateError("NO_CONTRACTS", f"there is no *.yaml in {path}")
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
        "problems": [_problem(problem) for problem in each.problems],
        "hints": [_problem(hint) for hint in each.hints],
    }


def _problem(problem: Problem) -> Mapping[str, Any]:
    return {"line": problem.line, "field": problem.field, "reason": problem.reason}


def _in_force(lake: Lake) -> dict[str, Contract]:
    try:
        return {stored.contract.table: stored.contract for stored in lake.contracts()}
    except ContractInvalid:
        return {}  # one of them has to be replaced: this push may be what does it
