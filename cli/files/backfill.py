"""`lakegate backfill`: bring many existing files through the gate."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from access.deployment.choice import find
from access.files.backfill import Backfill, Progress, Step, source_of
from access.files.backfill import backfill as bring
from access.files.uploads import BadTarget, chosen
from cli.console import json_output, terminal
from cli.console.options import AsJson
from cli.ingestions.wait import EXIT_CODES
from functions.adapters.all import Adapters
from functions.adapters.s3 import contracts_of
from lakegate.job.landing import ID_PART, hidden_rule
from lakegate.text import one_line

_MOST_NAMED = 20
_EXAMPLES = 3


def backfill(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="Existing files, as s3://bucket/prefix.")],
    table: Annotated[str, typer.Option(help="Table whose landing prefix to use.")] = "",
    to: Annotated[str, typer.Option(help="Prefix of the landing bucket; ends in /.")] = "",
    at_once: Annotated[int, typer.Option(min=1, help="Files in flight at a time.")] = 200,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list: copy nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy existing files into the landing bucket, and wait until each has its final state.

    Repeat the command after an interruption: it copies only what is missing. Exits like `lakegate
    drop --wait`: 0 published, 3 if one was rejected, 4 errored, 5 ignored; 1 if one did not land.
    """
    adapters = find(context.obj).adapters()
    request = requested(adapters, source, table, to, at_once)
    if dry_run:
        count(adapters, request, as_json=as_json)
        return
    progress = _followed(adapters, request)
    report(progress, as_json=as_json)
    codes = [EXIT_CODES[state] for state in progress.ended]
    raise typer.Exit(max([1 if progress.left else 0, *codes]))


def report(progress: Progress, *, as_json: bool) -> None:
    """Print how a backfill ended, and which files were not copied, with the reason of each."""
    if as_json:
        typer.echo(json_output.text(_document(progress)))
        return
    for line in (*_summary(progress), *_needless(progress)):
        terminal.out().print(one_line(line), soft_wrap=True)


def count(adapters: Adapters, request: Backfill, *, as_json: bool) -> None:
    """Print how many files a backfill would look at, and some of them with their new keys.

    As JSON these are all.
    """
    sources = list(adapters.landing.sources(request.bucket, request.prefix))
    due = [each for each in sources if not request.unfit(each)]
    left = Counter(map(request.unfit, sources))
    ignored, foreign = left[Step.IGNORED], left[Step.FOREIGN]
    if as_json:
        keys = [{"source": each.uri, "key": request.key(each), "size": each.size} for each in due]
        typer.echo(json_output.text({"due": keys, "ignored": ignored, "foreign": foreign}))
        return
    size = sum(each.size for each in due) / 1e6
    out = terminal.out()
    not_due = f"{ignored:,} {Step.IGNORED}, {foreign:,} {Step.FOREIGN}"
    out.print(f"{len(due):,} files, {size:,.1f} MB, with those that came before; {not_due}")
    for each in due[:_EXAMPLES]:
        out.print(one_line(f"  {each.uri} → {request.key(each)}"), soft_wrap=True)


def requested(adapters: Adapters, source: str, table: str, to: str, at_once: int) -> Backfill:
    """Return what the arguments ask for. Raises LakegateError for what cannot be brought."""
    bucket, prefix = source_of(source, adapters.settings.landing_buckets)
    in_force = contracts_of(adapters.lake, *filter(None, (table,)))
    contract = chosen((stored.contract for stored in in_force.values()), table)
    target = to or contract.landing_prefix
    if not target.startswith(contract.landing_prefix) or not target.endswith("/"):
        message = (
            f"{target} is no folder below {contract.landing_prefix}, where files for"
            f" {contract.table} land\nGive --to {contract.landing_prefix}FOLDER/"
        )
        raise BadTarget(message)
    if rule := hidden_rule(target, contract.landing_prefix):
        raise BadTarget(f"files below {target} are ignored: {rule.sentence}\nGive another --to")
    in_order = contract.write_mode.follows_landing
    every = {each.contract.landing_prefix for each in in_force.values()}
    own = contract.landing_prefix
    others = tuple(each for each in every - {own} if each.startswith(own))
    return Backfill(contract.table, bucket, prefix, target, at_once, in_order, others)


def _followed(adapters: Adapters, request: Backfill) -> Progress:
    """Return the progress at the end; meanwhile show it, on a terminal in one place."""
    progress, console = Progress(), terminal.err()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for progress in bring(adapters, request):
            if console.is_terminal:
                live.update(Text(_words(progress)), refresh=True)
    return progress


def _words(progress: Progress) -> str:
    steps = [f"{count:,} {step}" for step, count in sorted(progress.steps.items())]
    ends = [f"{count:,} {state}" for state, count in sorted(progress.ended.items())]
    return ", ".join(
        [*(steps or ["no file found"]), *ends, f"{len(progress.in_flight):,} under way"]
    )


def _document(progress: Progress) -> dict[str, Any]:
    """Return the end as JSON; `skipped` has every file that was not copied, with its reason."""
    return {
        "steps": dict(progress.steps),
        "ended": dict(progress.ended),
        "skipped": [
            {"source": file.source.uri, "key": file.key, "reason": file.step}
            for file in progress.skipped
        ],
        "left": len(progress.left),
        "failed": [json_output.ingestion_json(each) for each in progress.failed],
    }


def _summary(progress: Progress) -> Iterator[str]:
    yield _words(progress)
    for file in islice(progress.left, _MOST_NAMED):
        yield f"did not land, {file.step}: {file.source.uri} → {file.key}"
    if any(file.step in (Step.TAKEN, Step.FOREIGN) for file in progress.left):
        yield "Where another file or table has the key, bring the files into another folder: --to"
    for each in islice(progress.failed, _MOST_NAMED):
        reason = f", {each.reason.message}" if each.reason else ""
        yield f"{each.landed.key}: {each.state}{reason} (`lakegate show {each.id[:ID_PART]}`)"
    more = len(progress.left[_MOST_NAMED:]) + len(progress.failed[_MOST_NAMED:])
    if more:
        yield f"{more:,} more: `lakegate runs --waiting` lists what needs a decision"


def _needless(progress: Progress) -> Iterator[str]:
    needless = [file for file in progress.skipped if not file.is_left]
    for file in needless[:_MOST_NAMED]:
        yield f"skipped, {file.step}: {file.source.uri} → {file.key}"
    if needless[_MOST_NAMED:]:
        yield f"{len(needless[_MOST_NAMED:]):,} more were skipped: --json lists all of them"
