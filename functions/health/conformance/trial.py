"""Try all behaviours on a running server."""

import inspect
from collections.abc import Callable
from typing import Any

from functions.adapters.secrets import Secret
from functions.health.conformance import history, merges, references, server
from functions.health.conformance.scratch import scratch
from functions.health.model import Finding, fail, ok
from lakegate.errors import LakegateError

Behaviour = Callable[..., None]
_FIX = (
    "run `lakegate probe`; if it finds this again, go back to the NessieVersion before, and report "
    "this one: Lakegate must not publish with it"
)


def behaviours(*modules: Any) -> list[Behaviour]:
    """Return the behaviours that modules define, in their order."""
    return [
        each
        for module in modules
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and name[0] != "_"
    ]


BY_ADAPTER = behaviours(references, merges, history)
BY_SERVER = behaviours(server)


def tried(uri: str, token: str | Secret) -> list[Finding]:
    """Return a finding for each behaviour of the Nessie at `uri`; the token is the publisher's."""
    return [_finding(each, uri, token) for each in (*BY_ADAPTER, *BY_SERVER)]


def _finding(behaviour: Behaviour, uri: str, token: str | Secret) -> Finding:
    name, meaning = behaviour.__name__.replace("_", " "), str(behaviour.__doc__)
    try:
        with scratch(uri, token) as (on, writer):
            behaviour(on, writer) if behaviour in BY_SERVER else behaviour(on)
    except LakegateError as error:
        return fail(f"{meaning} Here: {error.message}", _FIX, name)
    except Exception as error:  # noqa: BLE001 - the others are tried as well
        # Only the error's type: its message might contain a token.
        return fail(f"{meaning} Here: {type(error).__name__}", _FIX, name)
    return ok(meaning, name)
