"""`lakegate contract`: its commands."""

import json

import typer

from access.contract.editor_schema import contract_schema
from cli.console import terminal
from cli.contract.check import check
from cli.contract.in_force import list_contracts, push_contracts, withdraw_contract
from cli.contract.local_test import try_out
from cli.contract.suggest.command import suggest

contract = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Draft, check and push contracts.",
)
contract.command("test")(try_out)
contract.command("check")(check)
contract.command("suggest")(suggest)


@contract.command()
def schema() -> None:
    """Print the JSON Schema of contracts, by which editors complete and check them."""
    terminal.raw(json.dumps(contract_schema(), indent=2) + "\n")


contract.command("list")(list_contracts)
contract.command("push")(push_contracts)
contract.command("withdraw")(withdraw_contract)
