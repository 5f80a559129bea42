"""What a change set would do, as a table."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from cli import terminal
from infra.aws.stack_plan import loses
from infra.cloudformation import Change

_MARKS = {"Add": ("+", "green"), "Remove": ("-", "red"), "Modify": ("~", "yellow")}
_LOUD = "bold red"


def table(changes: Iterable[Change]) -> Table:
    """The changes, one a line; a resource that is replaced cannot be overlooked."""
    made = terminal.table("", "resource", "type", "what changes")
    for change in changes:
        mark, colour = _MARKS.get(change.action, ("?", "yellow"))
        words = Text(", ".join(change.properties))
        if change.replacement == "True":
            mark, colour, words = "!", _LOUD, Text(f"REPLACED, for {words}", _LOUD)
        elif change.replacement == "Conditional":
            words = Text(f"perhaps REPLACED, for {words}", "bold yellow")
        if lost := loses(change):
            words = Text(f"{words.plain or 'REMOVED'}: {lost}", _LOUD)
        made.add_row(Text(mark, colour), Text(change.resource, colour), change.type, words)
    return made
