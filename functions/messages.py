"""The words of an alert: Slack's Block Kit, within its limits, and harmless whatever a file says.

Limits: 50 blocks a message, 3,000 characters a section, 150 a header (Slack, "Block Kit
reference"). Text from files, keys and contracts is escaped, so that it neither links nor pings
(Slack, "Formatting text for app surfaces").
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.ingestion import Ingestion, State
from lakegate.report import ADDRESS, AuditReport, CheckResult
from lakegate.visible import one_line, visible

_SECTION, _HEADER = 3000, 150
_REASON = 1000  # of a section, so that what follows the reason is never cut off
_MOST_CHECKS, _MOST_SAMPLES = 10, 3

_ADVICE = {  # to a person who is to decide, by the reason's code
    "LIKELY_DUPLICATE": "Publish it if its rows are meant to be in the table twice.\n",
    "CANNOT_REPLACE": "Delete the earlier version's rows from the table, then publish this one.\n",
}


@dataclass(frozen=True)
class Alert:
    """One message: `text` is what notifications show, `blocks` what the channel shows.

    `about` names what happened: whoever tells it again, after a crash, gives it the same name.
    """

    text: str
    blocks: tuple[Mapping[str, Any], ...]
    about: str = ""


def alert(ingestion: Ingestion, report: AuditReport | None) -> Alert:
    """The alert for an ingestion that ended rejected or errored."""
    code = ingestion.reason.code if ingestion.reason else "UNKNOWN"
    title = f"{ingestion.state.capitalize()}: {ingestion.name} ({code})"
    failed = report.failed if report else ()
    return Alert(
        text=_cut(_escaped(one_line(title)), _SECTION),
        blocks=(
            _header(title),
            _section(_what_happened(ingestion)),
            *[_section(_check(check)) for check in failed[:_MOST_CHECKS]],
            *([_section(_more(failed))] if len(failed) > _MOST_CHECKS else []),
            _section(_what_to_do(ingestion)),
        ),
        about=_about(ingestion),
    )


def duplicate(ingestion: Ingestion, first: Ingestion) -> Alert:
    """The notice that a file was published although `first` had brought the same bytes."""
    title = f"Published, but likely a duplicate: {ingestion.name}"
    lines = [
        f"*Ingestion* {_code(ingestion.id)}",
        f"*Table* {_code(ingestion.table)}, {ingestion.rows:,} rows",
        f"*File* {_code(ingestion.landed.uri)}",
        f"The same bytes landed before, as {_code(first.landed.uri)}.",
    ]
    advice = (
        "If both were meant, there is nothing to do. If not, take one file's rows out of the "
        "table. With `onDuplicate: hold` in the contract such a file waits for a person."
    )
    commands = f"```lakegate show {ingestion.id}\nlakegate show {first.id}```"
    return Alert(
        text=_cut(_escaped(one_line(title)), _SECTION),
        blocks=(_header(title), _section("\n".join(lines)), _section(f"{advice}\n{commands}")),
        about=_about(ingestion),
    )


def unreadable_event(queue: str, body: str, reason: str) -> Alert:
    """The alert for a message that no handler could work off."""
    title = "Errored: an event could not be handled"
    lines = [f"*Queue* {_code(queue)}", f"*Reason* {_escaped(reason)}", f"```{_plain(body)}```"]
    blocks = (_section("\n".join([f"*{title}*", *lines])),)
    return Alert(title, blocks, about=f"{queue} {body}")


def _about(ingestion: Ingestion) -> str:
    return f"{ingestion.id} {ingestion.revision}"


def _what_happened(ingestion: Ingestion) -> str:
    reason = ingestion.reason.message if ingestion.reason else ""
    lines = [
        _cut(_escaped(reason), _REASON),
        *_source(ingestion),
        f"*Table* {_code(ingestion.table or 'none')}",
        f"*Branch* {_code(ingestion.branch or 'none was cut')}",
        f"*Ingestion* {_code(ingestion.id)}",
    ]
    return "\n".join(lines)


def _source(ingestion: Ingestion) -> list[str]:
    change = ingestion.change
    if not change:
        return [f"*File* {_code(ingestion.landed.uri)}"]
    by = f" by {_escaped(change.by)}" if change.by else ""
    why = f": {_escaped(change.message)}" if change.message else ""
    return [_cut(f"*Asked for*{by}{why}", _REASON), f"```{_plain(change.statement)[:_REASON]}```"]


def _check(check: CheckResult) -> str:
    columns = ", ".join(check.columns)[:_REASON]
    head = f":x: *{_escaped(check.id)}*" + (f" on {_code(columns)}" if columns else "")
    body = f"expected {_escaped(check.expected)}, found {_escaped(check.found)}"
    note = f"\n{_escaped(check.message)}" if check.message else ""
    rows = "\n".join(_row(sample) for sample in check.samples[:_MOST_SAMPLES])
    return f"{head}: {body}{note}" + (f"\n```{_plain(rows)}```" if rows else "")


def _row(sample: Mapping[str, str | None]) -> str:
    cells = {name: value for name, value in sample.items() if name not in ADDRESS}
    return one_line(", ".join(f"{k}={_cell(v)}" for k, v in cells.items()))


def _cell(value: str | None) -> str:
    return "null" if value is None else value


def _more(failed: tuple[CheckResult, ...]) -> str:
    return f"… and {len(failed) - _MOST_CHECKS} more failed checks, all in the audit report."


def _what_to_do(ingestion: Ingestion) -> str:
    commands = [f"lakegate show {ingestion.id}"]
    if ingestion.state is State.REJECTED and ingestion.audited_hash:
        commands.insert(0, f"lakegate inspect {ingestion.id}")
        commands.append(f"lakegate publish {ingestion.id} --by NAME --reason TEXT")
    commands += [f"lakegate {verb} {ingestion.id}" for verb in ("replay", "discard")]
    advice = _ADVICE.get(ingestion.reason.code, "") if ingestion.reason else ""
    return f"{advice}*Look further*\n```" + "\n".join(map(_plain, commands)) + "```"


def _header(title: str) -> dict[str, Any]:
    return {
        "type": "header",
        "text": {"type": "plain_text", "text": _cut(one_line(title), _HEADER)},
    }


def _section(text: str) -> dict[str, Any]:
    # Verbatim: what looks like an address or a channel in it becomes no link.
    words = {"type": "mrkdwn", "text": _cut(text, _SECTION), "verbatim": True}
    return {"type": "section", "text": words}


def _escaped(text: str) -> str:
    """Text that neither links nor pings, nor opens a block of code around what follows it."""
    harmless = visible(text).replace("```", "'''").replace("&", "&amp;")
    return harmless.replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    return _escaped(text.replace("`", "'"))[: _SECTION // 2]


def _code(text: str) -> str:
    return f"`{_plain(one_line(text))}`"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[: limit - 4]
    return kept + "…" + ("```" if kept.count("```") % 2 else "")
