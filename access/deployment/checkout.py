"""The checkout that runs, or the installed package, and where the local stack keeps its state."""

import os
from pathlib import Path

from infra.local import stack_file
from lakegate.errors import LakegateError

ROOT = Path(__file__).resolve().parents[2]


def is_checkout() -> bool:
    """Return whether a checkout runs, or a copy of one, and no installed package."""
    return (ROOT / "template.yaml").is_file()


def checkout() -> Path:
    """Return the checkout that runs. Raises LakegateError NO_CHECKOUT for an installed package."""
    if not is_checkout():
        message = (
            "only a checkout of Lakegate can do this: here its package is installed\n"
            "Work in a clone, after `make setup`."
        )
        raise LakegateError("NO_CHECKOUT", message)
    return ROOT


def home() -> Path:
    """Return the local stack's folder: LAKEGATE_HOME, or `.lakegate` in the checkout.

    For an installed package it is `.lakegate` in the user's home, or where its copy of the project
    is.
    """
    where = ROOT if is_checkout() else Path.home()
    own = ROOT.parent if (ROOT / stack_file.COPIED).is_file() else where / ".lakegate"
    return Path(os.environ.get("LAKEGATE_HOME") or own).resolve()
