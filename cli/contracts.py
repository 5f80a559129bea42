"""`lakegate contract check` and `push`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from cli import view
from cli.contract_check import check as checked
from cli.deployment import find
from functions.storage import Lake
from lakegate.contract import Contract, ContractInvalid, refuse_clashes
from lakegate.errors import LakegateError

contract = typer.Typer(no_args_is_help=True, help="Check contracts, and put them in force.")


@contract.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Contracts.", exists=True, dir_okay=False)],
) -> None:
    """Check contracts against the standard and against Lakegate; nothing is sent anywhere."""
    for file, (_, found) in read(files).items():
        view.out().print(f"{file}: {found.table}, {len(found.checks)} checks")


@contract.command("push")
def push_command(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="Where they are.", exists=True, file_okay=False)
    ] = Path("contracts"),
) -> None:
    """Check all contracts of a directory and put them in force: the next file is judged by them."""
    push(find(context.obj).world().lake, directory, view.err().print)


def push(lake: Lake, directory: Path, tell: Callable[[str], None]) -> None:
    """Put a directory's contracts in force, all or, when one of them cannot stand, none.

    Raises LakegateError with every problem in every file.
    """
    files = sorted(directory.glob("*.y*ml"))
    if not files:
        raise LakegateError("NO_CONTRACTS", f"there is no *.yaml in {directory}")
    given = read(files)
    in_force = _in_force(lake)
    tables = {found.table for _, found in given.values()}
    others = {f"the pushed {t}": c for t, c in in_force.items() if t not in tables}
    refuse_clashes({**others, **{str(file): found for file, (_, found) in given.items()}})
    for file, (text, found) in given.items():
        if found.table in in_force and in_force[found.table].sha256 == found.sha256:
            tell(f"contract {found.table} is in force already")
        else:
            lake.put_contract(found, text)
            tell(f"contract {found.table} put in force, from {file}")


def read(files: Iterable[Path]) -> dict[Path, tuple[str, Contract]]:
    """The texts and contracts of files. Raises LakegateError with the problems of all of them."""
    found: dict[Path, tuple[str, Contract]] = {}
    refusals: list[str] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
            found[file] = text, checked(text, str(file))
        except ContractInvalid as invalid:
            refusals.append(invalid.message)
        except (OSError, UnicodeDecodeError) as error:
            refusals.append(f"{file} cannot be read: {error}")
    if refusals:
        raise LakegateError("CONTRACT_INVALID", "\n".join(refusals))
    refuse_clashes({str(file): contract for file, (_, contract) in found.items()})
    return found


def _in_force(lake: Lake) -> dict[str, Contract]:
    try:
        return {stored.contract.table: stored.contract for stored in lake.contracts()}
    except ContractInvalid:
        return {}  # one of them has to be replaced: this push may be what does it
