"""`lakegate up` and `down`: control the local stack, from a checkout or without one."""

from collections.abc import Callable, Mapping
from pathlib import Path

from access.deployment.checkout import checkout, home, is_checkout
from access.deployment.choice import Choice, enter
from cli.console import terminal
from cli.console.spinner import SPINNER
from cli.contract.in_force import push
from functions.settings import Settings
from infra.local import own_project, stack_file
from infra.local.stack_file import Stack

Tell = Callable[[str], None]


def up() -> None:
    """Start the local stack, deploy changes and push contracts/.

    An installed package downloads what the stack needs on first use.
    """
    set_up()
    stack = start(terminal.progress_printer())
    terminal.out().print(
        terminal.facts(
            [
                ("S3 and AWS", stack.s3),
                ("Nessie", stack.nessie),
                ("Iceberg REST", f"{stack.iceberg}/main"),
                ("landing bucket", stack.landing_bucket),
                ("lake bucket", stack.lake_bucket),
                ("state and logs", home()),
            ]
        )
    )


def down() -> None:
    """Stop the local stack; keep its data."""
    stop(terminal.progress_printer())


def set_up() -> None:
    """Continue in a checkout, or in the copy of the project, which is made if it is missing."""
    if not is_checkout():
        SPINNER.stop()
        own_project.ensure(home(), terminal.progress_printer())
        own_project.continue_there(home())


def continue_in_project(stage: str | None) -> None:
    """Continue in a checkout, or in the copy of the project if the local stack is chosen.

    Raises LakegateError NO_STACK if there never was one. Call it before the deployment is opened.
    """
    if Choice.of(stage).local and not is_checkout():
        stack_file.read(home())
        if own_project.program(home()).exists():
            SPINNER.stop()
            own_project.continue_there(home())


def start(tell: Tell) -> Stack:
    """Start the local stack, push this checkout's contracts, and return the stack."""
    from infra.local import stack  # it imports Flask and more, which help does not need

    root = checkout()
    return stack.up(home(), root, lambda env: _push(env, root / "contracts", tell), tell)


def stop(tell: Tell) -> None:
    """Stop the local stack; keep its data."""
    from infra.local import stack

    stack.down(home(), tell)


def health() -> dict[str, str]:
    """Return the state of each part of the local stack. Raises LakegateError NO_STACK."""
    from infra.local import stack

    return stack.health(home(), checkout())


def _push(env: Mapping[str, str], directory: Path, tell: Tell) -> None:
    from functions.wiring import connect

    enter(env)
    push(connect(Settings.of(env)).lake, [directory], tell)
