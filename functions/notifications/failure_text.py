"""The words of a failure: its title, what to decide, and the commands for that."""

from functions.model.ingestion import Ingestion, State
from functions.model.messages.alert import Block
from functions.notifications.blocks import HEADER, code, cut, section
from lakegate.text import one_line

_ADVICE = {  # for the decision, by the reason's code
    "LIKELY_DUPLICATE": (
        "Publish it if its rows are meant to be in the table twice; discard it if not."
    ),
    "CANNOT_REPLACE": "Delete the earlier version's rows from the table, then publish this one.",
    "OUT_OF_ORDER": (
        "Publish it if its rows are to replace those of later files; discard it if not, or drop "
        "the file again to have it come last."
    ),
    "WITHDRAWN": "Replay it to publish its rows again, or discard it to accept that they are gone.",
}
_ADVICE_ELSE = {
    State.REJECTED: "correct the contract and replay this one",
    State.ERRORED: "fix the cause and replay this one",
}
_LONGEST_NAME = 40
_GONE = ("WITHDRAWN",)  # codes of those that were published, and that main lost since


def reason_code(ingestion: Ingestion) -> str:
    """Return the code of the reason for its failure."""
    return ingestion.reason.code if ingestion.reason else "UNKNOWN"


def failure_title(ingestion: Ingestion) -> str:
    """Return the title of a failure: table, file, state, cause, and what that means for main.

    The cause is the first clause of the reason. It and the names are cut to fit Slack's header.
    """
    table = cut(", ".join(ingestion.tables) or "no table", _LONGEST_NAME)
    head = one_line(f"{table}: {cut(ingestion.name, _LONGEST_NAME)} {ingestion.state}, ")
    words = ingestion.reason_text or reason_code(ingestion)
    first = words.strip().partition("\n")[0].partition("; ")[0]
    cause = one_line(first).rstrip(":.")
    end = "; gone from main" if is_gone(ingestion) else "; main unchanged"
    return f"{head}{cut(cause, HEADER - len(head) - len(end))}{end}"


def is_gone(ingestion: Ingestion) -> bool:
    """Return whether main lost its rows; any other failure leaves main as it was."""
    return reason_code(ingestion) in _GONE


def failure_advice(ingestion: Ingestion) -> str:
    """Return what to decide, in a sentence or two."""
    if advice := _ADVICE.get(reason_code(ingestion)):
        return advice
    anew = "Submit a corrected change" if ingestion.change else "Drop a corrected file"
    if ingestion.change and ingestion.change.takeover:
        anew = "Correct the branch by more commits and gate it again"
    advice = f"{anew}, or {_ADVICE_ELSE.get(ingestion.state, 'replay this one')}."
    if _is_publishable(ingestion):
        advice += " If its rows are right as they are, publish it anyway."
    return f"{advice} Discard it if it is not needed."


def how_to_look(ingestion: Ingestion) -> list[Block]:
    """Return the command that no button replaces: which rows break the contract."""
    if ingestion.state is not State.REJECTED or not ingestion.audited_hash:
        return []
    return [section(f"{code(f'lakegate inspect {ingestion.id}')} shows the rows that break it.")]


def failure_commands(ingestion: Ingestion) -> tuple[str, ...]:
    """Return the commands that do what the buttons do."""
    verbs = ("show", "replay", "discard")
    commands = [f"lakegate {verb} {ingestion.id}" for verb in verbs]
    if _is_publishable(ingestion):
        commands.insert(1, f"lakegate publish {ingestion.id} --by NAME --reason TEXT")
    return tuple(commands)


def _is_publishable(ingestion: Ingestion) -> bool:
    """Return whether an audit judged rows that are on its branch."""
    return ingestion.state is State.REJECTED and ingestion.has_audited_rows
