"""The console script `lakegate`: its commands, and how it prints errors."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli import (
    contracts,
    demo,
    deploy,
    destroy,
    doctor,
    drop,
    failed,
    generate,
    ingestions,
    inspect,
    local_stack,
    probe,
    query,
    reconcile,
    rotate,
    slack,
    snowflake,
    terminal,
    trace,
)
from lakegate.errors import LakegateError


class _Commands(TyperGroup):
    """The commands; a LakegateError prints its message and exits with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except LakegateError as error:
            first, *more = error.message.split("\n", 1)
            colon = ":" if first.endswith(":") else ""
            text = "\n".join([f"{first.removesuffix(':')} ({error.code}){colon}", *more])
            terminal.err().print(text, style="red", soft_wrap=True)
            raise typer.Exit(1) from error


_EXIT_CODES = (
    "Exit codes: 0 success, 1 error or problems found, 2 wrong usage."
    " With --wait also: 3 rejected, 4 errored, 5 ignored."
)

app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Check files on a branch before publishing.",
    epilog=_EXIT_CODES,
)


@app.callback()
def begin(
    context: typer.Context,
    stage: Annotated[
        str,
        typer.Option(help="Stage on AWS. Default: LAKEGATE_… variables, or else the local stack."),
    ] = "",
) -> None:
    """Work on the local stack, on the deployment that LAKEGATE_… variables name, or on a stage."""
    context.obj = stage


for _command in (
    local_stack.up,
    local_stack.down,
    local_stack.status,
    doctor.doctor,
    drop.drop,
    generate.generate,
    ingestions.runs,
    ingestions.show,
    inspect.inspect,
    query.query,
    trace.trace,
    query.page,
    drop.change,
    drop.retract,
    failed.replay,
    failed.publish,
    failed.discard,
    failed.accept,
    failed.expire,
    reconcile.reconcile,
    deploy.deploy,
    destroy.destroy,
    rotate.rotate,
    probe.probe,
    demo.demo,
):
    app.command()(_command)
app.add_typer(contracts.contract, name="contract")
app.add_typer(reconcile.ledger, name="ledger")
app.add_typer(snowflake.snowflake, name="snowflake")
app.add_typer(slack.slack, name="slack")
