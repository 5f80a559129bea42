"""`lakegate ledger`: its commands."""

import typer

from cli.ledger.realign import realign_ledger
from cli.ledger.rebuild import rebuild_ledger

ledger = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="Repair the ledger."
)
ledger.command("realign")(realign_ledger)
ledger.command("rebuild")(rebuild_ledger)
