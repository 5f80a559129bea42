"""The tables that have a contract or are on main, with their sizes."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from functions.adapters.all import Adapters
from functions.model.notes.upkeep_note import TableUpkeep

if TYPE_CHECKING:
    from access.tables.reader import Reader


@dataclass(frozen=True)
class ListedTable:
    """A table with a contract in force, or on main, or both.

    `rows`, `files` and `size` (bytes) are None before its first file is published; `version`,
    `prefix` and `owner` are "" without a contract. `upkeep` is what the daily upkeep found at the
    time `upkeep_at`, None before it looked.
    """

    table: str
    rows: int | None = None
    files: int | None = None
    size: int | None = None
    version: str = ""
    prefix: str = ""
    owner: str = ""
    upkeep: TableUpkeep | None = None
    upkeep_at: str = ""


def listed(adapters: Adapters, main: "Reader") -> list[ListedTable]:
    """Return the tables by name, with their sizes on main from its metadata."""
    on_main = {name: main.state(name) for name in main.names()}
    contracts = {each.contract.table: each.contract for each in adapters.lake.contracts(None)}
    note, tables = adapters.ledger.upkeep(), []
    for name in sorted(on_main.keys() | contracts.keys()):
        state, contract, upkeep = on_main.get(name), contracts.get(name), note.tables.get(name)
        sizes = (state.rows, state.files, state.size) if state else (None, None, None)
        terms = (contract.version, contract.landing_prefix, contract.owner) if contract else ()
        at = note.at if upkeep else ""
        tables.append(replace(ListedTable(name, *sizes, *terms), upkeep=upkeep, upkeep_at=at))
    return tables
