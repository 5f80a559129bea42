"""Values and decisions that the Lambdas, the job and the command line share.

Nothing in this package touches a network, a disk, a clock or the environment. `connect` is the
Python API: it is looked up above this package when a program first asks for it (docs/python.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from access.gate import Gate, connect
    from access.ingestions.value import Ingestion

__all__ = ["Gate", "Ingestion", "connect"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("access.gate"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
