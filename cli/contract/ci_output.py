"""Results of `contract check` and `contract test` for pipelines: annotations and JUnit XML.

GitHub shows an annotation at its line of a pull request ("Workflow commands for GitHub Actions").
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Annotated
from xml.etree import ElementTree as ET

import typer

from access.contract.check import Checked
from lakegate.audit import causes, failing_rows
from lakegate.audit.report import READABLE, AuditReport, CheckResult, Status
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.text import one_line, visible


class Format(StrEnum):
    """The notation of results: for people, for GitHub's workflows, or for other pipelines."""

    TEXT = "text"
    GITHUB = "github"
    JUNIT = "junit"


class Level(StrEnum):
    """The weight of a result; the middle three are names of GitHub's workflow commands."""

    PASSED = "passed"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    SKIPPED = "skipped"


AsFormat = Annotated[
    Format, typer.Option("--format", help="For people, GitHub's annotations, or JUnit XML.")
]

_LEVELS = {
    Status.PASS: Level.PASSED,
    Status.WARN: Level.WARNING,
    Status.SKIPPED: Level.SKIPPED,
}
# XML 1.0 can hold none of these, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def refuse_both(format_: Format, *, as_json: bool) -> None:
    """Raise BadParameter if results are to be printed in two notations."""
    if as_json and format_ is not Format.TEXT:
        raise typer.BadParameter(f"give --json or --format {format_}, not both")


@dataclass(frozen=True)
class Result:
    """One result about `subject`, a contract or a data file; `file` and `line` are its cause.

    `name` is a field, a check or a reason code.
    """

    subject: str
    name: str
    level: Level
    message: str = ""
    file: str = ""
    line: int = 1


def contract_results(checked: Iterable[Checked], clashing: LakegateError | None) -> list[Result]:
    """Return the problems and hints of contracts, and why they clash; a good one passed.

    One of the whole contract is one of each table in it, and is returned once.
    """
    results = [*dict.fromkeys(r for each in checked for r in _contract_results(each))]
    if clashing:
        results.append(Result("all contracts", clashing.code, Level.ERROR, clashing.message))
    return results


def _contract_results(checked: Checked) -> Iterator[Result]:
    file = str(checked.file)
    if checked.contract:
        words = f"{checked.contract.table}, {len(checked.contract.checks)} checks"
        yield Result(file, "contract", Level.PASSED, words)
    for level, problems in ((Level.ERROR, checked.problems), (Level.NOTICE, checked.hints)):
        for each in problems:
            yield Result(file, each.field or "contract", level, each.reason, file, each.line)


def audit_results(report: AuditReport, contract: Contract, file: str) -> list[Result]:
    """Return the result of each check of a local file, at the check's line of its contract.

    Columns that the file lacks are one result: the reason names them all.
    """
    lines = {check.id: check.line for check in contract.checks}
    lines |= {column.name: column.line for column in (*contract.nested, *contract.columns)}
    subject, reason = report.source.key, report.reason
    told = [check for check in report.checks if not check.is_told]
    results = [_check_result(subject, each, lines, file) for each in told]
    if not reason or any(result.level is Level.ERROR for result in results):
        return results
    missing = report.wrong_columns.missing if report.wrong_columns else ()
    line = _line(missing, lines)
    return [Result(subject, reason.code, Level.ERROR, reason.message, file, line), *results]


def _check_result(subject: str, check: CheckResult, lines: Mapping[str, int], file: str) -> Result:
    unreadable = [row.get("column") or "" for row in check.samples if check.id == READABLE]
    line = _line((check.id, *check.columns, *unreadable), lines)
    rows = "".join(f"\n  {row}" for row in failing_rows.told(check))
    words = f"{causes.finding(vars(check))}{rows}"
    return Result(subject, check.id, _LEVELS.get(check.status, Level.ERROR), words, file, line)


def _line(names: Iterable[str], lines: Mapping[str, int]) -> int:
    """Return the line of the first check or column that has one, else the first line."""
    return next((lines[name] for name in names if lines.get(name)), 1)


def text(results: Iterable[Result], format_: Format) -> str:
    """Return results in a notation for programs."""
    return _junit(results) if format_ is Format.JUNIT else "\n".join(map(_command, results))


def _command(result: Result) -> str:
    """Return a result as a workflow command; a plain line if there is nothing to annotate."""
    if result.level in (Level.PASSED, Level.SKIPPED):
        return one_line(f"{result.subject}: {result.name}: {result.level} {result.message}".strip())
    place = f"file={_property(result.file)},line={result.line}," if result.file else ""
    title = _property(result.name)
    other = f"{result.subject}: " if result.subject != result.file else ""
    return f"::{result.level} {place}title={title}::{_data(other + result.message)}"


def _data(value: str) -> str:
    """Return a text as a command takes it, so that no line of it is a command of its own."""
    shown = visible(value).replace("%", "%25").replace("\n", "%0A")
    return shown.replace("\r", "%0D")


def _property(value: str) -> str:
    return _data(one_line(value)).replace(":", "%3A").replace(",", "%2C")


def _junit(results: Iterable[Result]) -> str:
    """Return results as JUnit XML, with a suite for each contract or data file."""
    root = ET.Element("testsuites", name="lakegate")
    for subject, group in groupby(results, key=lambda result: result.subject):
        cases = list(group)
        levels = [case.level for case in cases]
        counts = {
            "tests": str(len(cases)),
            "failures": str(levels.count(Level.ERROR)),
            "errors": "0",
            "skipped": str(levels.count(Level.SKIPPED)),
        }
        suite = ET.SubElement(root, "testsuite", {"name": _xml(subject), **counts})
        for case in cases:
            _add_case(suite, case)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _add_case(suite: ET.Element, result: Result) -> None:
    place = {"file": _xml(result.file), "line": str(result.line)} if result.file else {}
    names = {"classname": _xml(result.subject), "name": _xml(result.name)}
    case = ET.SubElement(suite, "testcase", names | place)
    match result.level:
        case Level.ERROR:
            first = result.message.partition("\n")[0]
            ET.SubElement(case, "failure", message=_xml(first)).text = _xml(result.message)
        case Level.SKIPPED:
            ET.SubElement(case, "skipped", message=_xml(result.message))
        case Level.WARNING | Level.NOTICE:
            ET.SubElement(case, "system-out").text = _xml(f"{result.level}: {result.message}")
        case Level.PASSED:
            pass


def _xml(value: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", visible(value))
