"""`lakegate generate`: write example files, good and broken."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from access.deployment.choice import find
from access.files.uploads import put
from access.ingestions.follow import TrackedIngestion
from cli.console import terminal
from cli.console.terminal import progress_printer
from cli.files.drop import list_uploads
from cli.files.fault_injection import MEANING, Fault
from cli.ingestions.wait import wait_for
from functions.adapters.all import Adapters

_PATIENCE = 900.0  # seconds
_NULL_RATE = 0.1
_FEWEST = 20  # rows that a file needs for its faults to show
_HELP_FAULT = "Fault in the last file: " + "; ".join(
    f"{fault}: {meaning}" for fault, meaning in MEANING.items()
)


class Format(StrEnum):
    """The format of generated files."""

    PARQUET = "parquet"
    CSV = "csv"


def generate(
    context: typer.Context,
    rows: Annotated[
        int, typer.Option("-n", "--rows", help="Rows per file.", min=1, max=10**9)
    ] = 1_000,
    files: Annotated[int, typer.Option(help="Number of files.", min=1, max=999)] = 1,
    null_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of nulls in nullable columns.",
            min=0,
            max=1,
            show_default=str(_NULL_RATE),
        ),
    ] = None,
    no_null: Annotated[bool, typer.Option("--no-null", help="No nulls: --null-rate 0.")] = False,
    fault: Annotated[list[Fault] | None, typer.Option(help=_HELP_FAULT)] = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0, max=1_000_000)] = 0,
    format_: Annotated[Format, typer.Option("--format", help="File format.")] = Format.PARQUET,
    out: Annotated[Path, typer.Option(help="Folder to write to.", file_okay=False)] = Path(
        "generated"
    ),
    upload: Annotated[
        bool, typer.Option("--upload", help="Push the contract and drop the files.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --upload: wait, and show each step.")
    ] = False,
) -> None:
    """Write files of made-up parcels, and their contract; the same files every time.

    Faults are in the last file. With --wait, exits like `lakegate drop`.
    """
    from cli.files import sample_files  # pyarrow takes its time

    faults = frozenset(fault or ())
    _refuse_senseless(rows, format_, faults)
    if wait and not upload:
        raise typer.BadParameter("there is nothing to wait for: add --upload", param_hint="--wait")
    rate = _rate(null_rate, no_null=no_null)
    adapters = find(context.obj).adapters() if upload else None
    wanted = [sample_files.FileSpec(rows, number, seed, rate) for number in range(1, files + 1)]
    made = {out / f"parcels-{seed}-{each.file:03}.{format_}": each for each in wanted}
    contract = sample_files.write_contract(out, format_)
    with _progress(rows * files) as written:
        sample_files.write(made, faults, written)
    for file in (contract, *made):
        terminal.out().print(str(file), soft_wrap=True)
    if adapters:
        tracked = _upload(adapters, contract, made)
        if wait:
            wait_for(adapters, tracked, _PATIENCE)


def _upload(adapters: Adapters, contract: Path, files: Iterable[Path]) -> list[TrackedIngestion]:
    from cli.contract.in_force import push
    from lakegate.contract.model import parse

    push(adapters.lake, [contract], progress_printer())
    prefix = parse(contract.read_text(encoding="utf-8"), str(contract)).landing_prefix
    tracked = [put(adapters, file, prefix + file.name) for file in files]
    list_uploads(tracked)
    return tracked


def _refuse_senseless(rows: int, format_: Format, faults: frozenset[Fault]) -> None:
    if Fault.RAGGED in faults and format_ is not Format.CSV:
        raise typer.BadParameter(
            "ragged is for CSV files only: add --format csv", param_hint="--fault"
        )
    if faults and rows < _FEWEST:
        raise typer.BadParameter(f"faults need at least {_FEWEST} rows", param_hint="--rows")


def _rate(null_rate: float | None, *, no_null: bool) -> float:
    if no_null and null_rate is not None:
        raise typer.BadParameter("give --null-rate or --no-null, not both", param_hint="--no-null")
    if no_null:
        return 0.0
    return _NULL_RATE if null_rate is None else null_rate


@contextmanager
def _progress(rows: int) -> Iterator[Callable[[int], None]]:
    """Show a bar of the rows written, on a terminal."""
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn())
    console = terminal.err()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=rows)
        yield lambda count: bar.advance(task, count)
