"""`lakegate demo`: ingest real flights, four good days and a broken one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from rich.text import Text

from access.deployment.checkout import checkout, home
from access.deployment.choice import stack_deployment
from access.deployment.deployment import Deployment
from access.ingestions.follow import TrackedIngestion, dropped, finished, follow
from cli.console import audit, terminal
from cli.ingestions.progress import progress_table, show_progress
from cli.local import slack_messages, stack
from cli.tables.query import rows
from functions.adapters.all import Adapters
from functions.model.commits import MAIN
from functions.model.ingestion import State
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.job.landing import ID_PART

_DAYS = 5
_SECONDS = 900.0
_NEW_YEAR, _LAST_DAY = date(2013, 1, 1), date(2013, 12, 31)
_CONTRACT = "contracts/nyc.flights.yaml"
_BY_AIRPORT = "SELECT origin, count(*) AS flights FROM nyc.flights GROUP BY origin"
_BROKEN_ROWS = "SELECT carrier, flight, origin, dep_delay FROM nyc.flights WHERE origin = 'NYC'"


def demo() -> None:
    """Show every step on real flights: four good days and a broken one.

    Starts the local stack, and stops it again if it was not running. Keeps the data. An installed
    package downloads what the stack needs on first use.
    """
    stack.set_up()  # an error comes before any heading
    console = terminal.out()
    console.print("\nLakegate: ingesting five days of flights\n", style="bold")
    tell = terminal.progress_printer()
    with _running(tell) as deployment:
        _perform(console, deployment, tell)


def _perform(console: Console, deployment: Deployment, tell: stack.Tell) -> None:
    adapters = deployment.adapters()
    contract = parse((checkout() / _CONTRACT).read_text(encoding="utf-8"), _CONTRACT)
    tell(f"counting the rows of {contract.table} on main")
    before = _count(deployment, contract.table)
    tell("dropping five files into the landing bucket, the last one with broken rows")
    tracked, written = _drop(adapters, contract)
    with show_progress(console) as show:
        tracked = follow(adapters, tracked, finished, _SECONDS, show)
    if not console.is_terminal:
        console.print(progress_table(tracked))
    after = _count(deployment, contract.table)
    *good, bad = tracked
    refuse_surprises(good, bad, written, after - before)
    console.print(_counted(contract.table, before, after, written))
    _show_rejection(console, deployment, bad)
    _show_commands(console, bad)


@contextmanager
def _running(tell: stack.Tell) -> Iterator[Deployment]:
    ran = _runs()
    local = stack.start(tell)
    try:
        yield stack_deployment(local)
    finally:
        if not ran:
            stack.stop(tell)


def _runs() -> bool:
    try:
        return any(state != "down" for state in stack.health().values())
    except LakegateError:
        return False  # there never was a stack


def _drop(adapters: Adapters, contract: Contract) -> tuple[list[TrackedIngestion], int]:
    """Drop the next days, the last one broken; return also the number of good rows."""
    from cli.local import flights  # pyarrow takes its time, which no other command has to wait for

    everything = flights.read(contract.columns)
    keys = next_days(contract.landing_prefix, {each.key for each in adapters.landing.landed()})
    *good, bad = [(key, flights.day_flights(everything, day)) for key, day in keys.items()]
    files = [*good, (bad[0], flights.broken(bad[1]))]
    tracked = [dropped(adapters.landing.put(key, flights.as_parquet(rows))) for key, rows in files]
    return tracked, sum(rows.num_rows for _, rows in good)


def next_days(prefix: str, landed: set[str]) -> dict[str, date]:
    """Return the keys of the first days that have not landed. Raises LakegateError NO_DAYS_LEFT."""
    year = [_NEW_YEAR + timedelta(n) for n in range((_LAST_DAY - _NEW_YEAR).days + 1)]
    keys = {f"{prefix}{day}.parquet": day for day in year}
    left = [key for key in keys if key not in landed]
    if len(left) < _DAYS:
        message = (
            "all days of 2013 have been dropped\nEmpty the lake for another demo with `make clean`."
        )
        raise LakegateError("NO_DAYS_LEFT", message)
    return {key: keys[key] for key in left[:_DAYS]}


def _count(deployment: Deployment, table: str) -> int:
    main = deployment.reader(MAIN)
    if not main.has(table):
        return 0
    with main.answer(f"SELECT count(*) FROM {table}") as answer:
        return int(next(rows(answer))[0])


def refuse_surprises(
    good: list[TrackedIngestion], bad: TrackedIngestion, written: int, gained: int
) -> None:
    """Raise LakegateError if the demo did not end as expected."""
    wanted = [(item, State.PUBLISHED) for item in good] + [(bad, State.REJECTED)]
    wrong = [
        f"{item.name} should be {state}, but is {item.ingestion.state}"
        + (f": {item.ingestion.reason.message}" if item.ingestion.reason else "")
        for item, state in wanted
        if item.ingestion.state is not state
    ]
    if not wrong and gained < written:
        wrong = [f"{written:,} rows were published, but main has {gained:,} more"]
    if wrong:
        raise LakegateError("DEMO_FAILED", "\n".join([*wrong, f"Read the logs in {home()}/logs."]))


def _counted(table: str, before: int, after: int, written: int) -> Text:
    others = after - before - written  # of a demo that was interrupted
    return Text.assemble(
        f"{table} on main: {before:,} rows before, ",
        (f"{after:,} rows after", "bold green"),
        f" ({after - before:+,}" + (f", {others:,} of an earlier demo)\n" if others else ")\n"),
    )


def _show_rejection(console: Console, deployment: Deployment, bad: TrackedIngestion) -> None:
    console.print(
        Text.assemble(
            (f"{bad.name} was rejected", "bold red"),
            ". It is not on main, but on its branch:\n  ",
            (bad.ingestion.branch, "cyan"),
        )
    )
    failing = [
        check for check in bad.ingestion.audit.checks if check["status"] in ("fail", "error")
    ]
    console.print(audit.checks(failing))
    message = slack_messages.message_about(deployment.addresses["slack"], bad.ingestion.id)
    console.print(slack_messages.panel(message))


def _show_commands(console: Console, bad: TrackedIngestion) -> None:
    command, branch = _command(), bad.ingestion.branch
    console.print("\nCommands", style="bold")
    console.print(
        f"  {command} up\n"
        f"  {command} show {bad.ingestion.id[:ID_PART]}\n"
        f'  {command} query "{_BY_AIRPORT}"\n'
        f'  {command} query "{_BROKEN_ROWS}" --ref {branch}\n'
        f"  {command} page\n",
        soft_wrap=True,
        style="cyan",
    )


def _command() -> str:
    """Return the command line that calls `lakegate` from the current directory."""
    installed = checkout() / ".venv/bin/lakegate"
    command = shutil.which("lakegate")
    if command or not installed.is_relative_to(Path.cwd()):
        return "lakegate" if command else str(installed)
    return str(installed.relative_to(Path.cwd()))
