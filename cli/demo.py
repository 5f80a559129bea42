"""`lakegate demo`: real flights on their way into the lake, good days and a broken one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from rich.text import Text

from access.deployment import ROOT, Deployment, home, of_stack
from cli import local_stack, slack, terminal
from cli.drop import showing
from cli.follow import Sight, dropped, finished, follow, way
from cli.query import rows
from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.model.ingestion import State
from infra.local import stack
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.landing import ID_PART

_DAYS = 5
_SECONDS = 900.0
_NEW_YEAR, _LAST_DAY = date(2013, 1, 1), date(2013, 12, 31)
_CONTRACT = "contracts/nyc.flights.yaml"
_BY_AIRPORT = "SELECT origin, count(*) AS flights FROM nyc.flights GROUP BY origin"
_BROKEN_ROWS = "SELECT carrier, flight, origin, dep_delay FROM nyc.flights WHERE origin = 'NYC'"


def demo() -> None:
    """Show the whole way on real flights: four good days and a broken one.

    Starts the local stack, and stops it again if it was not running; the data stays.
    """
    console = terminal.out()
    console.print("\nLakegate: five days of flights on their way into the lake\n", style="bold")
    tell = local_stack.teller()
    with _running(tell) as deployment:
        _perform(console, deployment, tell)


def _perform(console: Console, deployment: Deployment, tell: local_stack.Tell) -> None:
    adapters = deployment.adapters()
    contract = parse((ROOT / _CONTRACT).read_text(encoding="utf-8"), _CONTRACT)
    tell(f"counting the rows of {contract.table} on main")
    before = _count(deployment, contract.table)
    tell("dropping five files into the landing bucket, the last one with broken rows")
    sights, written = _drop(adapters, contract)
    with showing(console) as show:
        sights = follow(adapters, sights, finished, _SECONDS, show)
    if not console.is_terminal:
        console.print(way(sights))
    after = _count(deployment, contract.table)
    *good, bad = sights
    refuse_surprises(good, bad, written, after - before)
    console.print(_counted(contract.table, before, after, written))
    _show_rejection(console, deployment, bad)
    _show_commands(console, bad)


@contextmanager
def _running(tell: local_stack.Tell) -> Iterator[Deployment]:
    ran = _runs()
    found = local_stack.start(tell)
    try:
        yield of_stack(found)
    finally:
        if not ran:
            stack.down(home(), tell)


def _runs() -> bool:
    try:
        return any(state != "down" for state in stack.health(home(), ROOT).values())
    except LakegateError:
        return False  # there never was a stack


def _drop(adapters: Adapters, contract: Contract) -> tuple[list[Sight], int]:
    """Drop the next days, the last of them broken; returns also how many good rows that are."""
    from cli import flights  # pyarrow takes its time, which no other command has to wait for

    everything = flights.read(contract.columns)
    keys = next_days(contract.landing_prefix, {each.key for each in adapters.landing.landed()})
    *good, bad = [(key, flights.of_day(everything, day)) for key, day in keys.items()]
    files = [*good, (bad[0], flights.broken(bad[1]))]
    sights = [dropped(adapters.landing.put(key, flights.as_parquet(rows))) for key, rows in files]
    return sights, sum(rows.num_rows for _, rows in good)


def next_days(prefix: str, landed: set[str]) -> dict[str, date]:
    """The keys of the first days that have not landed yet. Raises LakegateError NO_DAYS_LEFT."""
    year = [_NEW_YEAR + timedelta(n) for n in range((_LAST_DAY - _NEW_YEAR).days + 1)]
    keys = {f"{prefix}{day}.parquet": day for day in year}
    left = [key for key in keys if key not in landed]
    if len(left) < _DAYS:
        message = "all of 2013 has been dropped: `make clean` empties the lake for another demo"
        raise LakegateError("NO_DAYS_LEFT", message)
    return {key: keys[key] for key in left[:_DAYS]}


def _count(deployment: Deployment, table: str) -> int:
    main = deployment.reader(MAIN)
    if not main.has(table):
        return 0
    with main.answer(f"SELECT count(*) FROM {table}") as answer:
        return int(next(rows(answer))[0])


def refuse_surprises(good: list[Sight], bad: Sight, written: int, gained: int) -> None:
    """Raises LakegateError where the demo did not end as it should."""
    wanted = [(sight, State.PUBLISHED) for sight in good] + [(bad, State.REJECTED)]
    wrong = [
        f"{sight.name} should have ended {state}, and ended {sight.ingestion.state}"
        + (f": {sight.ingestion.reason.message}" if sight.ingestion.reason else "")
        for sight, state in wanted
        if sight.ingestion.state is not state
    ]
    if not wrong and gained < written:
        wrong = [f"{written:,} rows were published, but main has {gained:,} more"]
    if wrong:
        raise LakegateError("DEMO_FAILED", "\n".join([*wrong, f"The logs are in {home()}/logs."]))


def _counted(table: str, before: int, after: int, written: int) -> Text:
    others = after - before - written  # of a demo that was interrupted
    return Text.assemble(
        f"{table} on main: {before:,} rows before, ",
        (f"{after:,} rows after", "bold green"),
        f" ({after - before:+,}" + (f", {others:,} of an earlier demo)\n" if others else ")\n"),
    )


def _show_rejection(console: Console, deployment: Deployment, bad: Sight) -> None:
    console.print(
        Text.assemble(
            (f"{bad.name} was rejected", "bold red"),
            "; nobody who reads main sees it. It waits on its branch:\n  ",
            (bad.ingestion.branch, "cyan"),
        )
    )
    failing = [check for check in bad.ingestion.checks if check["status"] in ("fail", "error")]
    console.print(terminal.checks(failing))
    message = slack.message_about(deployment.addresses["slack"], bad.ingestion.id)
    console.print(slack.panel(message))


def _show_commands(console: Console, bad: Sight) -> None:
    command, branch = _command(), bad.ingestion.branch
    console.print("\nGo on with", style="bold")
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
    """How a person calls this command from here."""
    installed = ROOT / ".venv/bin/lakegate"
    found = shutil.which("lakegate")
    if found or not installed.is_relative_to(Path.cwd()):
        return "lakegate" if found else str(installed)
    return str(installed.relative_to(Path.cwd()))
