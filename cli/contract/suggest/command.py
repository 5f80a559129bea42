"""`lakegate contract suggest`: draft a contract from a sample."""

import re
from pathlib import Path
from typing import Annotated

import typer

from access.contract.check import check
from cli.console import terminal
from lakegate.contract.model import qualified, table_problem
from lakegate.errors import LakegateError

_LONGEST = 100  # characters of a file's name that become a table's, which may have 127


def suggest(
    data: Annotated[Path, typer.Argument(help="Sample of the data.", exists=True, dir_okay=False)],
    table: Annotated[
        str, typer.Option(help="<namespace>.<table>. Default: from the file name.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="New file to write to.")] = None,
) -> None:
    """Draft a contract from a sample of the data, with limits that all its rows meet."""
    if table and (problem := table_problem(qualified(table))):
        raise typer.BadParameter(problem, param_hint="--table")
    if out and out.exists():
        message = f"{out} exists, and is not overwritten\nGive --out another name, or delete it."
        raise LakegateError("NOT_WRITTEN", message)
    text = suggested(data, table)
    if out is None:
        terminal.raw(text)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LakegateError("NOT_WRITTEN", f"cannot write {out}: {error.strerror}") from error
    terminal.err().print(f"wrote {out}")


def suggested(data: Path, table: str = "") -> str:
    """Return the text of a contract for files like `data`, which accepts `data` itself.

    Raises LakegateError if the file cannot be read, or ContractInvalid if no contract can describe
    it, for example with a column without a name.
    """
    import duckdb

    from cli.contract.suggest.trial import tried

    with duckdb.connect() as connection:
        text = tried(connection, data, table or f"drafts.{_plain(data.name)}")
    check(text, f"the draft from {data}")
    return text


def _plain(name: str) -> str:
    """Return a table name made of a file's name."""
    words = re.findall(r"[a-z0-9]+", name.lower().partition(".")[0][:_LONGEST])
    return f"t_{'_'.join(words)}" if not words or words[0][0].isdigit() else "_".join(words)
