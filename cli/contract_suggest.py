"""`lakegate contract suggest`: a first contract, drafted from a sample of the data."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cli import terminal
from cli.contract_check import check
from lakegate.errors import LakegateError


def suggest(
    data: Annotated[
        Path, typer.Argument(help="A sample of the data.", exists=True, dir_okay=False)
    ],
    table: Annotated[str, typer.Option(help="<namespace>.<table>; by default from the name.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write it here, where nothing is yet.")] = None,
) -> None:
    """Draft a contract from a sample of the data: what all of its rows keep to, with room."""
    text = suggested(data, table)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LakegateError("NOT_WRITTEN", f"{out} was not written: {error}") from error
    terminal.err().print(f"drafted {out}")


def suggested(data: Path, table: str = "") -> str:
    """The text of a contract for files like `data`.

    Raises LakegateError when the file cannot be read, or ContractInvalid when it has what no
    contract can have, such as a column without a name.
    """
    from cli.draft import draft
    from cli.sample import sample

    text = draft(sample(data), table or f"drafts.{_plain(data.name)}", data.name)
    check(text, f"the draft from {data}")
    return text


def _plain(name: str) -> str:
    """A table's name from a file's."""
    words = re.findall(r"[a-z0-9]+", name.lower().partition(".")[0])
    return f"t_{'_'.join(words)}" if not words or words[0][0].isdigit() else "_".join(words)
