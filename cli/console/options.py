"""Arguments and options that several commands share."""

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from access.deployment.user import user_name
from cli.console.spinner import SPINNER
from lakegate import times
from lakegate.job.landing import ID_PART

_AGO = re.compile(r"(\d{1,5}) *(min|h|d)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days"}


def since(text: str) -> str:
    """Return a time as the ledger writes it: a date, a time, or how long ago, like `36h`.

    A date or a time without a zone is in the machine's. Raises BadParameter, also if it is
    still to come.
    """
    if ago := _AGO.fullmatch(text.strip()):
        moment = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return times.text(moment)
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"{text!r} is no time: give 2026-11-02, 2026-11-02T10:00, 36h, 7d or 30min"
        raise typer.BadParameter(message) from error
    if moment > datetime.now(UTC):
        raise typer.BadParameter(f"{text!r} is in the future: give a time that has passed")
    return times.text(moment)


def named(by: str) -> str:
    """Return the name that was given, or else the user's. Raises BadParameter without one."""
    if name := by.strip() or user_name():
        return name
    raise typer.BadParameter("this machine does not know who you are: give your name by --by")


Id = Annotated[str, typer.Argument(metavar="ID", help="An ingestion id, or its first characters.")]
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Ingestion ids, or their first characters."),
]
OfCause = Annotated[
    str,
    typer.Option(
        "--cause",
        metavar="TEXT|ID",
        help="All that wait with this in their reason, or with the same cause as this one"
        f" (at least {ID_PART} characters of its id).",
    ),
]
By = Annotated[str, typer.Option(help="Your name, recorded.")]
ByOrUser = Annotated[str, typer.Option(help="Your name, recorded. Default: your user name.")]
Reason = Annotated[str, typer.Option(help="Reason, recorded in main's log.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
StageOption = Annotated[str, typer.Option("--stage", help="Stage, part of every resource name.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait, and show each step.")]
Seconds = Annotated[float, typer.Option("--timeout", help="Seconds to wait.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


class NotAgreed(typer.BadParameter):
    """The command needs a person's consent; what it prints says so without `Invalid value`."""

    def format_message(self) -> str:
        """Return the message."""
        return self.message


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person at a terminal, unless `yes`. Raises Abort without consent.

    Raises NotAgreed where there is no terminal to ask at.
    """
    if yes:
        return
    SPINNER.stop()
    if not sys.stdin.isatty():
        raise NotAgreed(f"{question} Nothing was done: add `--yes` to agree.")
    typer.confirm(question, abort=True, err=True)
