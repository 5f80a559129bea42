"""`lakegate ledger realign`: bring ledger and main to one state after a restoration of Nessie."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson, DryRun, NotAgreed, Yes
from functions.model.ingestion import Ingestion
from functions.operations.recovery.realign_plan import Kind
from lakegate.text import count

if TYPE_CHECKING:  # it imports AWS's library: a second that help does not need
    from functions.operations.recovery.realign import Done, Realigned

_TEXTS = {
    Kind.PUBLISH_AGAIN: "published again from their landed objects",
    Kind.RUN_AGAIN: "run again, as they or their branch depended on what was lost",
    Kind.LOST: "LOST: their landed object is gone",
    Kind.UNCLEAR: "LEFT ALONE: main may have their rows, so look at them first",
    Kind.ADOPT: "recorded as published, as main has them",
    Kind.REOPEN: "open again: the version that superseded them was lost",
    Kind.RECORD_AGAIN: "recorded again in the audit tables",
    Kind.DELETE_BRANCHES: "cleared of branches that had been deleted before",
    Kind.BRANCH_GONE: "without their branch: replay them before you publish them anyway",
}
_NAMED = (Kind.LOST, Kind.UNCLEAR, Kind.REOPEN, Kind.BRANCH_GONE)


def realign_ledger(
    context: typer.Context, dry_run: DryRun = False, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Publish again what main lost when Nessie was restored to a backup; name what cannot be.

    Run it again after a failure, and until it finds no difference. Exits 1 if rows are lost or
    unclear.
    """
    if not (dry_run or yes):
        message = "Nothing was done: look with --dry-run at what it would do; then add `--yes`."
        raise NotAgreed(message)
    from functions.operations.recovery.realign import realign

    realigned = realign(find(context.obj).adapters(), dry_run=dry_run)
    if as_json:
        typer.echo(json_output.text(document(realigned)))
    else:
        for line in lines(realigned, dry_run=dry_run):
            terminal.out().print(line, soft_wrap=True, markup=False)
    if any(kind in (Kind.LOST, Kind.UNCLEAR) for _, kind in _pairs(realigned.done)):
        raise typer.Exit(1)


def document(realigned: "Realigned") -> list[dict[str, Any]]:
    """Return the decisions for `--json`; each has the ingestion as it was before.

    Branches of compactions are of none.
    """
    dropped = {
        "kinds": [Kind.DELETE_BRANCHES.value],
        "why": "their compactions had ended",
        "branches": list(realigned.compactions),
        "overtaken": False,
        "ingestion": None,
    }
    decisions = [
        {
            "kinds": [kind.value for kind in each.decision.kinds],
            "why": each.decision.why,
            "branches": list(each.decision.branches),
            "overtaken": each.overtaken,
            "ingestion": json_output.ingestion_json(each.decision.ingestion),
        }
        for each in realigned.done
    ]
    return [*decisions, dropped] if realigned.compactions else decisions


def lines(realigned: "Realigned", *, dry_run: bool) -> Iterator[str]:
    """Yield the numbers of each kind, every loss by name, and the next steps."""
    done, compactions = realigned.done, realigned.compactions
    if not done and not compactions:
        yield "Ledger and main agree: there is nothing to do."
        return
    yield "Nothing was changed; these would be:" if dry_run else "These are:"
    by_kind = _by_kind(done)
    for kind in (kind for kind in Kind if kind in by_kind):
        yield f"{len(by_kind[kind]):>9,} {_TEXTS[kind]}"
    if compactions:
        yield f"{len(compactions):>9,} branches of compactions that had ended, deleted again"
    for each in done:
        for kind in (kind for kind in each.decision.kinds if kind in _NAMED):
            yield _name(kind, each)
    yield from (f"{table}: {counted}" for table, counted in _tables(done))
    if overtaken := sum(each.overtaken for each in done):
        yield f"Other processes changed {overtaken:,} of them meanwhile: run the command again."
    if not dry_run:
        yield (
            "The sweep starts the job runs. Consumers hear again of what is published again; "
            "those of the tables above keep newer positions, see docs/restore.md.\n"
            "Check with `lakegate reconcile --full --thorough` once nothing is in flight."
        )


def _name(kind: Kind, done: "Done") -> str:
    now, why = done.decision.ingestion, done.decision.why
    where = f"{now.landed.uri} (version {now.landed.version})"
    about = f"{count(now.audit.rows, 'row')} in {', '.join(now.tables)}"
    return f"{kind.value}: {now.id} {where}, {about}" + (f": {why}" if why else "")


def _tables(done: "Sequence[Done]") -> Iterator[tuple[str, str]]:
    """Yield the tables that main lost rows of, each with the number of files and changes."""
    files, changes = Counter[str](), Counter[str]()
    for now, kind in _pairs(done):
        if kind in (Kind.PUBLISH_AGAIN, Kind.LOST):
            (changes if now.change else files).update(now.tables)
    for table in sorted(files | changes):
        lost = f"{count(files[table], 'file')} and {count(changes[table], 'change')}"
        yield table, f"main lost {lost}"


def _by_kind(done: "Sequence[Done]") -> Mapping[Kind, list[Ingestion]]:
    by_kind: defaultdict[Kind, list[Ingestion]] = defaultdict(list)
    for now, kind in _pairs(done):
        by_kind[kind].append(now)
    return by_kind


def _pairs(done: "Sequence[Done]") -> Iterator[tuple[Ingestion, Kind]]:
    return ((each.decision.ingestion, kind) for each in done for kind in each.decision.kinds)
