"""The console script `lakegate`: its commands, and how errors reach a person."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli import (
    change,
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
    query,
    reconcile,
    rotate,
    slack,
    snowflake,
    terminal,
)
from lakegate.errors import LakegateError


class _Commands(TyperGroup):
    """The commands; an error that is meant for people ends in its sentence and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except LakegateError as error:
            terminal.err().print(f"{error.message} ({error.code})", style="red", soft_wrap=True)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Lands files in an Iceberg lake by way of a branch, an audit and a merge.",
)


@app.callback()
def begin(
    context: typer.Context,
    stage: Annotated[
        str, typer.Option(help="A deployment on AWS, by the stage in its stack's name.")
    ] = "",
) -> None:
    """Work on the local stack, on what LAKEGATE_… variables name, or on a stage on AWS."""
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
    query.page,
    change.change,
    failed.replay,
    failed.publish,
    failed.discard,
    failed.accept,
    failed.expire,
    reconcile.reconcile,
    deploy.deploy,
    destroy.destroy,
    rotate.rotate,
    demo.demo,
):
    app.command()(_command)
app.add_typer(contracts.contract, name="contract")
app.add_typer(reconcile.ledger, name="ledger")
app.add_typer(snowflake.snowflake, name="snowflake")
app.add_typer(slack.slack, name="slack")
