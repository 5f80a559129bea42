"""`lakegate contract list`, `push` and `withdraw`: the contracts in force."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from access.contract.check import Checked, named
from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson, DryRun
from cli.contract.backtest import DEFAULT_LIMIT, Limit, Since, backtests, exit_code, show
from cli.contract.check import checked_files, raise_refusals
from functions.adapters.s3 import CONTRACTS, Lake, StoredContract, contract_key
from lakegate.contract.claims import refuse_clashes
from lakegate.errors import Permanent
from lakegate.text import one_line

_DEFAULT = [Path("contracts")]


def list_contracts(context: typer.Context, as_json: AsJson = False) -> None:
    """List the contracts in force: table, version, landing prefix, format, checks, owner."""
    contracts = in_force(find(context.obj).adapters().lake)
    if as_json:
        typer.echo(json_output.text([_listed(each) for each in contracts]))
        return
    if not contracts:
        terminal.err().print("No contract is in force: `lakegate contract push` puts them in force")
        return
    made = terminal.table(
        "table", "version", "files under", "format", "checks", "owner", right=["checks"]
    )
    for each in contracts:
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


def push_contracts(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Contract files, or directories of them.", exists=True),
    ] = _DEFAULT,
    dry_run: DryRun = False,
    since: Since = None,
    limit: Limit = DEFAULT_LIMIT,
) -> None:
    """Check contracts, and put them in force for the next files: all of them or none.

    With --dry-run and --since it judges landed files by those that would be new in force, and
    exits like `lakegate contract test --since`.
    """
    if since and not dry_run:
        raise typer.BadParameter("--since needs --dry-run")
    adapters, tell = find(context.obj).adapters(), terminal.err().print
    if not dry_run:
        push(adapters.lake, paths, tell)
        return
    new = pending(adapters.lake, paths, tell)
    for each in new:
        tell(f"contract {each.valid().table} would be put in force, from {each.file}")
    contracts = [each.valid() for each in new]
    trials = backtests(adapters, contracts, since, limit) if since else []
    for tried in trials:
        show(tried)
    raise typer.Exit(exit_code(trials))


def withdraw_contract(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="TABLE", help="Table of the contract, or the contract's key.")
    ],
) -> None:
    """Take a contract out of force: new files of its table cause alerts; its rows stay."""
    terminal.err().print(withdraw(find(context.obj).adapters().lake, name), soft_wrap=True)


def withdraw(lake: Lake, name: str) -> str:
    """Take the contract of a table, or the text under a key, out of force; return a message.

    An invalid contract can be withdrawn too, and one that is too large. Raises Missing if there is
    none of that name.
    """
    key = name if name.startswith(CONTRACTS) else contract_key(name)
    with suppress(Permanent):
        lake.contract_at(key, "")
    lake.delete_objects([key])
    return f"{key} is out of force; {lake.bucket} keeps its text as an older version"


def push(lake: Lake, paths: Iterable[Path], tell: Callable[[str], None]) -> None:
    """Put contract files, and all of directories, in force; none of them if one is invalid.

    The lake's limits bound their size. Raises LakegateError with every problem in every file.
    """
    for each in pending(lake, paths, tell):
        contract = each.valid()
        lake.put_contract(contract, each.text)
        tell(f"contract {contract.table} put in force, from {each.file}")


def pending(lake: Lake, paths: Iterable[Path], tell: Callable[[str], None]) -> list[Checked]:
    """Return the contracts that are not in force; tell of those that are. Raises LakegateError."""
    contracts = checked_files(paths, lake.limits)
    raise_refusals(contracts)
    given = named(contracts)
    # without an invalid one: this push may be what replaces it
    pushed = {stored.contract.table: stored.contract for stored in in_force(lake)}
    tables = {contract.table for contract in given.values()}
    others = {f"the pushed {t}": c for t, c in pushed.items() if t not in tables}
    refuse_clashes({**others, **given})
    digests = {table: contract.sha256 for table, contract in pushed.items()}
    known = [each for each in contracts if digests.get(each.valid().table) == each.valid().sha256]
    for each in known:
        tell(f"contract {each.valid().table} is in force already")
    return [each for each in contracts if each not in known]
