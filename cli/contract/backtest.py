"""`--since` of `lakegate contract test`: what landed files would become by a contract."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from access.contract.check import checked_one
from access.contract.local_audit import local_judge
from cli.console import json_output, terminal
from cli.console.options import since
from cli.contract import ci_output
from cli.contract.ci_output import Format, Level, Result
from functions.adapters.all import Adapters
from lakegate.contract.model import Contract
from lakegate.job.landing import ID_PART
from lakegate.text import count, one_line

if TYPE_CHECKING:
    from access.evidence.backtest import Backtest, Backtested

Since = Annotated[
    str | None,
    typer.Option(
        parser=since,
        metavar="TIME",
        help="Judge what landed for the table since then: 2026-11-02, 36h, 30d.",
    ),
]
Limit = Annotated[int, typer.Option(min=0, help="With --since: most ingestions; 0 for all.")]
DEFAULT_LIMIT = 50
_WOULD_FAIL, _UNJUDGED = 3, 4


def audit_landed(
    adapters: Adapters,
    contract: Contract,
    file: Path,
    since: str,
    limit: int,
    as_format: Format,
    *,
    as_json: bool,
) -> int:
    """Print what landed files would become by a contract from a file; return the exit code."""
    (backtest,) = backtests(adapters, [contract], since, limit)
    if as_json:
        typer.echo(json_output.text(_document(backtest)))
    elif as_format is not Format.TEXT:
        results = list(_results(backtest, contract, str(file)))
        typer.echo(ci_output.text(results, as_format))
    else:
        show(backtest)
    return exit_code([backtest])


def backtests(
    adapters: Adapters, contracts: Sequence[Contract], since: str, limit: int
) -> "list[Backtest]":
    """Return a backtest of each contract; meanwhile show what is judged.

    A limit that leaves some out is told on standard error.
    """
    # a tenth of a second to import, which no other command waits for
    from access.evidence.backtest import Request, backtest

    limits, looking = adapters.settings.limits, "looking for landed files"
    with local_judge(limits) as judge, terminal.err().status(looking) as status:

        def tell(key: str) -> None:
            status.update(f"judging {one_line(key)}")

        requests = [Request(contract, since, limit) for contract in contracts]
        trials = [backtest(adapters, request, judge, tell) for request in requests]
    for table in (each.table for each in trials if each.more):
        words = f"Only the newest {limit:,} ingestions of {table}; --limit 0 judges all"
        terminal.err().print(words, style="dim")
    return trials


def show(backtest: "Backtest") -> None:
    """Print which files would change their verdict, how many there are, and what is not judged."""
    for part in _parts(backtest):
        terminal.out().print(part, soft_wrap=isinstance(part, str))


def exit_code(trials: "Sequence[Backtest]") -> int:
    """Return 3 if a file that passed would fail, else 4 if one could not be judged, else 0."""
    if any(file.would_fail for each in trials for file in each.files):
        return _WOULD_FAIL
    return _UNJUDGED if any(each.unjudged for each in trials) else 0


def _document(backtest: "Backtest") -> dict[str, Any]:
    """Return a backtest for `--json`."""
    return {
        "table": backtest.table,
        "more": backtest.more,
        "files": [_file(f) for f in backtest.files],
    }


def _results(backtest: "Backtest", contract: Contract, file: str) -> Iterator[Result]:
    """Yield for pipelines why files would fail, at the lines of the contract's `file`."""
    for each in backtest.files:
        if each.unjudged:
            yield Result(each.name, "not judged", Level.WARNING, each.unjudged)
        elif each.report and each.would_fail:
            yield from ci_output.audit_results(each.report, contract, file)
        else:
            yield Result(each.name, "backtest", Level.PASSED, f"{each.recorded} → {each.verdict}")


def tried_contract(adapters: Adapters, named: Path, table: str) -> Contract:
    """Return the contract in a file, of its `table` if there are several, or else one in force."""
    if named.is_file() or len(named.parts) > 1:  # a table's files may lie in a folder of its name
        return checked_one(named, adapters.settings.limits, table).valid()
    from access.files.uploads import chosen  # with AWS's library, which other commands do without

    return chosen((stored.contract for stored in adapters.lake.contracts(None)), str(named))


def _file(each: "Backtested") -> dict[str, Any]:
    report = each.report
    return {
        "ingestion": each.ingestion,
        "name": each.name,
        "version": each.version,
        "recorded": each.recorded,
        "verdict": each.verdict,
        "is_changed": each.is_changed,
        "rows_before": each.rows_before,
        "rows": each.rows,
        "reason": asdict(report.reason) if report and report.reason else None,
        "failed": [check.id for check in report.failed] if report else [],
        "unjudged": each.unjudged,
    }


def _parts(backtest: "Backtest") -> Iterator[RenderableType]:
    if backtest.changed:
        yield _table(backtest.changed)
    yield f"{backtest.table}: {', '.join(_counts(backtest))}"
    names: dict[str, list[str]] = {}
    for each in backtest.unjudged:
        names.setdefault(each.unjudged, []).append(one_line(each.name))
    for reason, of_reason in names.items():
        yield f"not judged, {one_line(reason)}: {', '.join(of_reason)}"


def _table(changed: "Sequence[Backtested]") -> RenderableType:
    made = terminal.table("id", "file", "verdict", "rows", "checks", "why", right=["rows"])
    for each in changed:
        failed = each.report.failed if each.report else ()
        made.add_row(
            each.ingestion[:ID_PART],
            one_line(each.name),
            f"{each.recorded} → {each.verdict}",
            f"{each.rows_changed:,}",
            ", ".join(check.id for check in failed),
            _why(each),
        )
    return made


def _why(each: "Backtested") -> str:
    reason = each.report.reason if each.report else None
    if reason:
        return one_line(reason.with_code)
    return f"{count(each.rows, 'row')} would pass, not {each.rows_before:,}"


def _counts(backtest: "Backtest") -> Iterator[str]:
    """Yield how many files have which verdicts, and how many of their rows are concerned."""
    yield count(len(backtest.files), "file")
    files, rows = Counter[str](), Counter[str]()
    for each in backtest.changed:
        change = f"{each.recorded} → {each.verdict}"
        files[change] += 1
        rows[change] += each.rows_changed
    for change, many in files.items():
        yield f"{many:,} {change} ({count(rows[change], 'row')})"
    yield f"{len(backtest.files) - len(backtest.changed) - len(backtest.unjudged):,} unchanged"
    if backtest.unjudged:
        yield f"{len(backtest.unjudged):,} not judged"
