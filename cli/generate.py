"""`lakegate generate`: files to try things with, good ones and broken ones."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from access.deployment import find
from cli import terminal
from cli.contracts import push
from cli.drop import put, wait_for
from cli.fault_injection import MEANING, Fault
from cli.follow import Sight
from cli.local_stack import teller
from functions.adapters.all import Adapters
from lakegate.contract.model import parse

_PATIENCE = 900.0  # seconds
_NULL_RATE = 0.1
_FEWEST = 20  # rows that a file needs for its faults to show
_HELP_FAULT = "What is wrong with the last file: " + "; ".join(
    f"{fault}: {meaning}" for fault, meaning in MEANING.items()
)


class Format(StrEnum):
    """How the files are written."""

    PARQUET = "parquet"
    CSV = "csv"


def generate(
    context: typer.Context,
    rows: Annotated[
        int, typer.Option("-n", "--rows", help="Rows a file.", min=1, max=10**9)
    ] = 1_000,
    files: Annotated[int, typer.Option(help="How many files.", min=1, max=999)] = 1,
    null_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of nulls where there may be any.",
            min=0,
            max=1,
            show_default=str(_NULL_RATE),
        ),
    ] = None,
    no_null: Annotated[bool, typer.Option("--no-null", help="No nulls: --null-rate 0.")] = False,
    fault: Annotated[list[Fault] | None, typer.Option(help=_HELP_FAULT)] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other rows.", min=0, max=1_000_000)] = 0,
    format_: Annotated[Format, typer.Option("--format")] = Format.PARQUET,
    out: Annotated[Path, typer.Option(help="The folder to write to.", file_okay=False)] = Path(
        "generated"
    ),
    upload: Annotated[
        bool, typer.Option("--upload", help="Put their contract in force, and drop the files.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --upload: show the way to the end state.")
    ] = False,
) -> None:
    """Write files of made-up parcels, and the contract that they keep; the same ones every time.

    Faults are in the last file. The exit codes of --wait are those of `lakegate drop`.
    """
    from cli import sample_files, sample_writers  # pyarrow takes its time

    faults = frozenset(fault or ())
    _refuse_senseless(rows, format_, faults)
    if wait and not upload:
        raise typer.BadParameter("there is nothing to wait for: add --upload", param_hint="--wait")
    rate = _rate(null_rate, no_null=no_null)
    adapters = find(context.obj).adapters() if upload else None
    wanted = [sample_files.Wanted(rows, number, seed, rate) for number in range(1, files + 1)]
    made = {out / f"parcels-{seed}-{each.file:03}.{format_}": each for each in wanted}
    contract = sample_writers.write_contract(out, format_)
    with _progress(rows * files) as written:
        sample_writers.write(made, faults, written)
    for file in (contract, *made):
        terminal.out().print(str(file), soft_wrap=True)
    if adapters:
        sights = _upload(adapters, contract, made)
        if wait:
            wait_for(adapters, sights, _PATIENCE)


def _upload(adapters: Adapters, contract: Path, files: Iterable[Path]) -> list[Sight]:
    push(adapters.lake, [contract], teller())
    prefix = parse(contract.read_text(encoding="utf-8"), str(contract)).landing_prefix
    sights = [put(adapters, file, prefix + file.name) for file in files]
    for sight in sights:
        terminal.out().print(f"{sight.ingestion.id}  {sight.ingestion.landed.uri}", soft_wrap=True)
    return sights


def _refuse_senseless(rows: int, format_: Format, faults: frozenset[Fault]) -> None:
    if Fault.RAGGED in faults and format_ is not Format.CSV:
        raise typer.BadParameter("only lines can be ragged: add --format csv", param_hint="--fault")
    if faults and rows < _FEWEST:
        raise typer.BadParameter(f"{_FEWEST} at least, for faults to show", param_hint="--rows")


def _rate(null_rate: float | None, *, no_null: bool) -> float:
    if no_null and null_rate is not None:
        raise typer.BadParameter("give --null-rate or --no-null, not both", param_hint="--no-null")
    if no_null:
        return 0.0
    return _NULL_RATE if null_rate is None else null_rate


@contextmanager
def _progress(rows: int) -> Iterator[Callable[[int], None]]:
    """A bar of the rows that are done, on a terminal."""
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn())
    console = terminal.err()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=rows)
        yield lambda count: bar.advance(task, count)
