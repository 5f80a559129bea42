"""`lakegate status`: show what is there, what works and what is under way."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from access.deployment.choice import find
from access.deployment.deployment import Deployment
from access.ingestions.shared_runs import runs_up
from cli.console import json_output, terminal
from cli.console.options import AsJson
from cli.local import stack
from cli.local.stack import continue_in_project
from functions.adapters.all import Adapters
from functions.model.commits import MAIN
from functions.model.notes.upkeep_note import UpkeepNote
from functions.model.shown_state import ShownState, is_approved
from functions.operations.missing_files import due
from functions.pipeline.start.spending import spending
from lakegate.errors import LakegateError
from lakegate.times import moment


def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show addresses, buckets, the health of each part, ingestions by state and shared runs.

    Exits 1 when a part is down.
    """
    continue_in_project(context.obj)
    document = _status(find(context.obj, running=False))
    if as_json:
        typer.echo(json_output.text(document))
    else:
        print_status(document)
    require_up(document)


def require_up(document: Mapping[str, Any]) -> None:
    """Exit with 1 when a part is down, and say how those of a local stack are started."""
    states = {*document["health"].values()}
    if "down" in states:
        terminal.err().print("Start what is down: `lakegate up`", highlight=False)
    if states - {"up"}:
        raise typer.Exit(1)


def print_status(document: Mapping[str, Any]) -> None:
    """Print addresses, health and counts, each once; the reader's token is for programs."""
    apart = ("reader_token", "budget")
    named = {k: v for k, v in document.items() if isinstance(v, str) and k not in apart}
    terminal.out().print(terminal.facts((k.replace("_", " "), v) for k, v in named.items()))
    terminal.out().print(health_table(document["health"]), counted(document))
    if overdue := document["overdue"]:
        lines = overdue_words(overdue, document["due"])
        terminal.out().print(terminal.facts(("overdue", line) for line in lines))
    if (upkeep := document["upkeep"]) and (upkeep["at"] or upkeep["doubt"]):
        terminal.out().print(terminal.facts([("last upkeep", upkeep_words(upkeep))]))
    if shared := document["shared_runs"]:
        terminal.out().print(shared_runs_table(shared))
    if budget := document["budget"]:
        terminal.out().print(terminal.facts([("budget", budget)]))


def health_table(parts: Mapping[str, str]) -> Table:
    """Return the parts with their health."""
    states = {k: Text(v, "green" if v == "up" else "bold red") for k, v in parts.items()}
    return terminal.facts(states.items())


def shared_runs_table(shared: Mapping[str, Any]) -> Table:
    """Return how many files wait for a shared run, and the runs that are up."""
    waiting, up = shared["waiting"], shared["up"] or ()
    lines = [f"{run['state'].lower()}, {run['name']}, {run['id']}" for run in up]
    return terminal.facts(
        [
            ("files that wait for a shared run", f"{waiting:,}" if waiting else ""),
            *(("shared run", line) for line in lines),
            ("shared runs", shared["problem"]),
        ]
    )


def counted(document: Mapping[str, Any]) -> RenderableType:
    """Return the number of ingestions in each state; states without any are left out."""
    by_state = {name: f"{many:,}" for name, many in (document["counts"] or {}).items() if many}
    if document["approved"]:
        by_state["published"] += f" ({document['approved']:,} approved)"
    return terminal.facts(by_state.items())


_COUNTED = ("counts", "approved", "overdue", "due", "upkeep", "shared_runs", "budget")


def _status(deployment: Deployment) -> dict[str, Any]:
    parts = stack.health() if deployment.local else _health(deployment.adapters())
    are_up = all(state == "up" for state in parts.values())
    return {
        **deployment.addresses,
        "landing_bucket": deployment.settings.landing_bucket,
        "lake_bucket": deployment.settings.lake_bucket,
        "ledger_table": deployment.settings.ledger_table,
        "reader_token": deployment.reader_token,
        "health": parts,
        **(counts(deployment.adapters()) if are_up else dict.fromkeys(_COUNTED)),
    }


def counts(adapters: Adapters) -> dict[str, Any]:
    """Return the ingestions by state, the tables whose next file is overdue, and shared runs.

    `upkeep` sums what the last daily upkeep found. `approved` counts those that were published
    although their audit failed. Of shared runs: how many files wait for one, and those that are up.
    `budget` says what the day's job runs cost, and why none is started; "" without a budget.
    """
    states: Counter[ShownState] = Counter()
    overdue = adapters.ledger.freshness().since()
    waiting = approved = 0
    for ingestion in adapters.ledger.all():
        states[ShownState.of(ingestion)] += 1
        approved += is_approved(ingestion)
        waiting += ingestion.awaits_shared_run
    return {
        "counts": {state.value: states[state] for state in ShownState},
        "approved": approved,
        "overdue": overdue,
        "due": due(adapters, overdue),
        "upkeep": _upkeep(adapters.ledger.upkeep()),
        "shared_runs": {"waiting": waiting, **_runs(adapters)},
        "budget": _budget(adapters),
    }


def _budget(adapters: Adapters) -> str:
    budget, spent = adapters.settings.daily_budget_usd, spending(adapters)
    return (spent.why_wait(budget) or spent.amounts(budget)) if budget else ""


def overdue_words(overdue: Mapping[str, str], due: Mapping[str, str]) -> list[str]:
    """Return for each overdue table since when no file came, and when one was due."""
    return [
        f"{table}: no file since {moment(since)}, "
        f"due {moment(due.get(table, '')) or 'by no contract'}"
        for table, since in overdue.items()
    ]


def _upkeep(note: UpkeepNote) -> dict[str, Any]:
    tables = note.tables.values()
    return {
        "at": note.at,
        "doubt": note.doubt,
        "files": sum(each.files for each in tables),
        "small_files": sum(each.small for each in tables),
        "metadata_bytes": sum(each.metadata_bytes for each in tables),
        "dead_bytes": sum(each.dead_bytes for each in tables),
    }


def upkeep_words(upkeep: Mapping[str, Any]) -> str:
    """Describe what the last upkeep found of all tables, or why it deleted nothing."""
    if upkeep["doubt"]:
        return f"in doubt: {upkeep['doubt']}"
    return (
        f"{upkeep['at']}: {upkeep['small_files']:,} of {upkeep['files']:,} data files are small, "
        f"{upkeep['metadata_bytes']:,} bytes of metadata, {upkeep['dead_bytes']:,} dead"
    )


def _runs(adapters: Adapters) -> dict[str, Any]:
    """Return the shared runs that are up, or as `problem` why they cannot be read."""
    try:
        up = [{"id": r.id, "name": r.name, "state": r.state.value} for r in runs_up(adapters)]
    except LakegateError as error:
        return {"up": None, "problem": error.message}
    return {"up": up, "problem": None}


def _health(adapters: Adapters) -> dict[str, str]:
    """Return the health of each system, by its cheapest request."""
    questions: dict[str, Callable[[], object]] = {
        "nessie": lambda: adapters.catalog.head(MAIN),
        "ledger": lambda: adapters.ledger.known(["none"]),
        "lake": adapters.lake.contracts,
    }
    return {name: _answer(ask) for name, ask in questions.items()}


def _answer(ask: Callable[[], object]) -> str:
    try:
        ask()
    except LakegateError as error:
        return error.message
    return "up"
