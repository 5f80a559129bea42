"""Write the texts of alerts and of other notifications."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import rows_of
from functions.model.messages.alert import Alert, Block, Kind
from functions.notifications import unreadable
from functions.notifications.blocks import SECTION as _SECTION
from functions.notifications.blocks import code, cut, escaped, header, link, notice, plain, section
from functions.notifications.failure_text import (
    failure_advice,
    failure_commands,
    failure_title,
    how_to_look,
    reason_code,
)
from lakegate.audit import causes, failing_rows
from lakegate.audit.diagnosis import cell_told
from lakegate.audit.report import AuditReport, CheckResult
from lakegate.text import one_line, visible
from lakegate.times import moment

if TYPE_CHECKING:  # it takes a quarter of a second, which on_action does not have
    from lakegate.contract.model import Contract

_LENGTH = 32  # characters, as an ingestion's id has


def digest(text: str) -> str:
    """Return a short name for a text of any length."""
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def member(subject: str) -> str:
    """Return a subject's name in its thread: an ingestion's id, or a digest of a longer text.

    An item of DynamoDB has at most 400 KB.
    """
    return subject if len(subject) <= _LENGTH else digest(subject)


_REASON = 1000  # so that the section's other lines fit
_MOST_CHECKS, _MOST_SAMPLES, _MOST_CELLS = 10, 3, 10
_SHORT = 200
_LONGEST_CAUSE, _LONGEST_UNREADABLE = 1000, 300


def alert(ingestion: Ingestion, report: AuditReport | None, page_url: str = "") -> Alert:
    """Return the alert for a rejected or errored ingestion."""
    failed, shown = (report.failed, report.untold) if report else ((), ())
    blocks = (
        section("\n".join([failure_advice(ingestion), *_page_link(ingestion, page_url)])),
        section(_what_happened(ingestion)),
        *[section(_finding(":x:", vars(c)) + _rows(c)) for c in shown[:_MOST_CHECKS]],
        *_more(len(shown), "failed checks"),
        *how_to_look(ingestion),
    )
    cause = " ".join([reason_code(ingestion), *sorted(check.id for check in failed)])
    base = _file_alert(ingestion, Kind.FAILED, failure_title(ingestion), blocks, page_url, cause)
    left_out = one_line(unreadable.named(report))[:_LONGEST_UNREADABLE]
    return replace(base, unreadable=left_out, lead=2, commands=failure_commands(ingestion))


def without_buttons(alert: Alert) -> Alert:
    """Return an alert with commands in the place of buttons, for where nobody may press any."""
    lead = alert.lead or len(alert.blocks)
    lines = "\n".join(map(plain, alert.commands))
    commands = (section(f"*Commands*\n```{lines}```"),) if lines else ()
    return replace(alert, blocks=(*alert.blocks[:lead], *commands, *alert.blocks[lead:]))


def recovered(ingestion: Ingestion, page_url: str = "") -> Alert:
    """Return the notice about the later fate of a failed ingestion."""
    title, words = _recovery(ingestion)
    lines = [
        cut(escaped(words), _REASON),
        f"*Table* {code(', '.join(ingestion.tables) or 'none')}",
        f"*Ingestion* {code(ingestion.id)}",
        *_page_link(ingestion, page_url),
    ]
    first = section(f"*{escaped(one_line(title))}*\n" + "\n".join(lines))
    blocks = (first, *(_warnings(ingestion) if ingestion.state is State.PUBLISHED else ()))
    return _file_alert(ingestion, Kind.RECOVERED, title, blocks, page_url, titled=False)


def duplicate(
    ingestion: Ingestion, first: Ingestion, page_url: str = "", kind: Kind = Kind.NOTICE
) -> Alert:
    """Return the notice that a file was published although `first` had the same content."""
    title = f"Published, but likely a duplicate: {ingestion.name}"
    before = "Some of its files" if ingestion.parts else "The same bytes"
    lines = [
        f"*Ingestion* {code(ingestion.id)}",
        f"*Table* {code(', '.join(ingestion.tables))}, {rows_of(ingestion)}",
        f"*File* {code(ingestion.landed.uri)}",
        f"{before} landed earlier, as {code(first.landed.uri)}.",
        *_owner(ingestion),
    ]
    advice = (
        "If both are intended, there is nothing to do. If not, delete one file's rows from the "
        "table. With `onDuplicate: hold` in the contract such a file waits for a decision."
    )
    commands = f"```lakegate show {ingestion.id}\nlakegate show {first.id}```"
    asked = "\n".join([advice, *_page_link(ingestion, page_url), commands])
    blocks = (section("\n".join(lines)), *_warnings(ingestion), section(asked))
    return _file_alert(ingestion, kind, title, blocks, page_url, "LIKELY_DUPLICATE")


def overdue(ingestion: Ingestion, why: str, page_url: str = "") -> Alert:
    """Return the notice that an audited ingestion has waited hours for main, and why."""
    title = f"Still not published: {ingestion.name}"
    lines = [
        f"It passed its audit and has waited for main since {moment(ingestion.ready_at)}.",
        *([cut(f"*Last try* {escaped(why)}", _REASON)] if why else []),
        *_source(ingestion),
        f"*Table* {code(', '.join(ingestion.tables))}",
        f"*Ingestion* {code(ingestion.id)}",
    ]
    advice = "It is retried every few minutes. If the last try names an error, fix that.\n"
    commands = f"```lakegate show {ingestion.id}```"
    asked = "\n".join([*_page_link(ingestion, page_url), commands])
    blocks = (section("\n".join(lines)), section(advice + asked))
    return _file_alert(ingestion, Kind.NOTICE, title, blocks, page_url, "OVERDUE")


def warned(ingestion: Ingestion, report: AuditReport | None, page_url: str = "") -> Alert:
    """Return the notice that a file was published with warnings, with rows of its report."""
    many = len(ingestion.audit.warnings)
    title = f"Published with {'a warning' if many == 1 else f'{many} warnings'}: {ingestion.name}"
    lines = [
        f"*Ingestion* {code(ingestion.id)}",
        f"*Table* {code(', '.join(ingestion.tables))}, {rows_of(ingestion)}",
        *_source(ingestion),
        *_owner(ingestion),
    ]
    advice = "The rows are on main; check whether they are correct."
    asked = [advice, *_page_link(ingestion, page_url), f"```lakegate show {ingestion.id}```"]
    warnings = _warnings(ingestion, report.warned if report else ())
    blocks = (section("\n".join(lines)), *warnings, section("\n".join(asked)))
    cause = " ".join(["WARNED", *sorted(check["id"] for check in ingestion.audit.warnings)])
    # A repeated notice, also after the ledger was rebuilt, is the same one.
    notice = _file_alert(ingestion, Kind.WARNING, title, blocks, page_url, cause)
    return replace(notice, about=f"{ingestion.id} warned in attempt {ingestion.attempt}")


def missing(contract: "Contract", since: str) -> Alert:
    """Return the notice that the next file of a table is overdue: none came since `since`."""
    title = f"Overdue: {contract.table}, no file since {moment(since)}{_due(contract, since)}"
    advice = (
        f"Ask who sends the files under {code(contract.landing_prefix)}. If one has landed since, "
        "`lakegate runs` says why it is not on main."
    )
    return _table_alert(contract, title, advice, f"{contract.table} overdue since {since}")


def _due(contract: "Contract", since: str) -> str:
    return f", due {moment(contract.expected.due(since))}" if contract.expected else ""


def arrived(contract: "Contract", at: str) -> Alert:
    """Return the notice that a table got the file that was overdue."""
    title = f"Came: {contract.table} got a file"
    told = f"It is on main since {moment(at)}."
    return _table_alert(contract, title, told, f"{contract.table} came {at}")


def _table_alert(contract: "Contract", title: str, told: str, about: str) -> Alert:
    expected = contract.expected.wording if contract.expected else ""
    owner = [f"*Owner* {escaped(contract.owner[:_SHORT])}"] if contract.owner else []
    lines = [f"*Table* {code(contract.table)}", f"*Files* {expected}", *owner, told]
    blocks = (header(title), section("\n".join(lines)))
    return Alert(title, blocks, about, Kind.NOTICE, table=contract.table, cause="OVERDUE")


def unreadable_event(queue: str, body: str, reason: str) -> Alert:
    """Return the alert for a message that no handler could process."""
    title = "Errored: an event could not be processed"
    lines = [f"*Queue* {code(queue)}", f"*Reason* {escaped(reason)}", f"```{plain(body)}```"]
    about = f"{queue} {digest(visible(body))}"
    return notice(title, "\n".join(lines), about, f"UNREADABLE_EVENT {queue}")


def upkeep_in_doubt(code_: str, reason: str) -> Alert:
    """Return the alert that upkeep deletes nothing until somebody has looked."""
    title = "Upkeep: nothing was deleted, as it may still be needed"
    words = f"*Reason* {code(code_)}: {escaped(reason)}"
    return notice(title, words, f"upkeep {digest(reason)}", f"UPKEEP {code_}")


def answer(now: Ingestion, words: str, about: str, more: str = "") -> Alert:
    """Return the answer to an action; its token is "" once no action is left.

    `more` are lines in Slack's markup behind the words.
    """
    return Alert(
        text=escaped(words),
        blocks=(section(f"{escaped(words)}{more}"),),
        about=f"{now.id} {about}",
        kind=Kind.ANSWER,
        ingestion=now.id,
        token="" if now.is_settled else state_token(now),
    )


def state_token(ingestion: Ingestion) -> str:
    """Return a token of the ingestion's state, to detect changes since an alert showed it.

    It has the attempt, the hash that can be published anyway ("" for none), and the time of the
    state: an attempt may fail more than once, be discarded and be superseded.
    """
    can = ingestion.state is State.REJECTED and ingestion.has_audited_rows and ingestion.is_open
    step = "superseded" if ingestion.superseded_by else ingestion.state.value
    since = ingestion.times.get("discarded" if ingestion.decisions.discarded else step, "")
    return f"{ingestion.attempt}:{ingestion.audited_hash if can else ''}:{since}"


def _file_alert(
    ingestion: Ingestion,
    kind: Kind,
    title: str,
    blocks: tuple[Block, ...],
    page_url: str,
    cause: str = "",
    *,
    titled: bool = True,
) -> Alert:
    return Alert(
        text=cut(escaped(one_line(title)), _SECTION),
        blocks=(header(title), *blocks) if titled else blocks,
        about=f"{ingestion.id} {ingestion.revision} {kind}",
        kind=kind,
        ingestion=ingestion.id,
        table=", ".join(sorted(ingestion.tables))[:_LONGEST_CAUSE],
        cause=one_line(cause[:_LONGEST_CAUSE]),
        token=state_token(ingestion),
        page=_page(ingestion, page_url),
        revision=ingestion.revision,
    )


def _recovery(ingestion: Ingestion) -> tuple[str, str]:
    """Return a title and a sentence about what happened to it."""
    name, approval = ingestion.name, ingestion.decisions.approval
    if ingestion.decisions.discarded:
        words = "Its branch is deleted. A replay reads the file again."
        return f"Discarded{ingestion.by_whom('discarded')}: {name}", words
    if ingestion.superseded_by:
        words = (
            f"It was {ingestion.state} ({reason_code(ingestion)}), and a newer version is "
            f"published as ingestion {ingestion.superseded_by}: no decision is needed. Its branch "
            "is kept until it expires."
        )
        return f"Superseded: {name}", words
    if ingestion.state is State.IGNORED:
        return f"No longer needed: {name}", ingestion.reason_text
    rows = f"{rows_of(ingestion)} on main"
    if approval:
        words = f"{rows}, approved by {approval.by}: {approval.reason}"
        return f"Published anyway by {approval.by}: {name}", words
    how = f"after replay{ingestion.by_whom('replayed')}"
    if "replayed" not in ingestion.times:  # main had it, though it was taken for a failure
        how = "after all"
    title = f"Published {how}: {name}"
    return title, f"{rows}, by attempt {ingestion.attempt}."


def _what_happened(ingestion: Ingestion) -> str:
    reason = ingestion.reason_text
    is_told = one_line(reason) in failure_title(ingestion)
    lines = [
        *([] if is_told else [cut(escaped(reason), _REASON)]),
        f"*Reason* {code(reason_code(ingestion))}",
        *_source(ingestion),
        f"*Table* {code(', '.join(ingestion.tables) or 'none')}",
        *_owner(ingestion),
        f"*Branch* {code(ingestion.branch or 'none created')}",
        f"*Ingestion* {code(ingestion.id)}",
    ]
    return "\n".join(lines)


def _owner(ingestion: Ingestion) -> list[str]:
    owner = one_line(ingestion.terms.owner)[:_SHORT]
    return [f"*Owner* {escaped(owner)}"] if owner else []


def _source(ingestion: Ingestion) -> list[str]:
    change = ingestion.change
    if not change:
        return [f"*File* {code(ingestion.landed.uri)}"]
    by = f" by {escaped(change.by)}" if change.by else ""
    why = f": {escaped(change.message)}" if change.message else ""
    return [cut(f"*Change*{by}{why}", _REASON), f"```{cut(plain(change.statement), _REASON)}```"]


def _rows(check: CheckResult) -> str:
    most = _MOST_CELLS if any(map(cell_told, check.samples)) else _MOST_SAMPLES
    rows = "\n".join(failing_rows.told(check)[:most])
    return f"\n```{plain(rows)}```" if rows else ""


def _finding(mark: str, check: Mapping[str, Any]) -> str:
    columns = ", ".join(check["columns"])[:_REASON]
    head = f"{mark} *{escaped(check['id'])}*" + (f" on {code(columns)}" if columns else "")
    return f"{head}: {escaped(causes.finding(check))}"


def _warnings(ingestion: Ingestion, reported: Sequence[CheckResult] = ()) -> list[Block]:
    """Return a section for each of the first warnings, and a count of the others.

    The ledger has them without rows, which come from the report.
    """
    warnings, rows = ingestion.audit.warnings, {each.id: _rows(each) for each in reported}
    shown = [
        section(_finding(":warning:", check) + rows.get(check["id"], ""))
        for check in warnings[:_MOST_CHECKS]
    ]
    return shown + _more(len(warnings), "warnings")


def _more(many: int, what: str) -> list[Block]:
    """Return how many checks are not shown, nothing if all are."""
    more = many - _MOST_CHECKS
    return [section(f"… and {more} more {what}, all in the audit report.")] if more > 0 else []


def _page(ingestion: Ingestion, page_url: str) -> str:
    address = f"{page_url.rstrip('/')}/ingestion?id={quote(ingestion.id, safe='')}"
    return address if page_url else ""


def _page_link(ingestion: Ingestion, page_url: str) -> list[str]:
    address = _page(ingestion, page_url)
    return [link(address, "On the quality page")] if address else []
