"""docs/python.md lists the methods of the Python API as they are."""

import re
from inspect import Parameter, isfunction, signature

from access.deployment.checkout import ROOT
from access.gate import Gate

GUIDE = ROOT / "docs" / "python.md"
_METHOD = re.compile(r"`(\w+)\(([^`]*)\)`")


def argument(parameter: Parameter) -> str:
    """Return an argument as the guide shows it."""
    stars = "*" if parameter.kind is Parameter.VAR_POSITIONAL else ""
    default = parameter.default
    if default is Parameter.empty:
        return f"{stars}{parameter.name}"
    value = f'"{default}"' if isinstance(default, str) else f"{default}".removesuffix(".0")
    return f"{parameter.name}={value}"


def test_the_guide_lists_the_methods_as_they_are() -> None:
    """Each method is there with its arguments, which have a default where none is needed."""
    rows = re.findall(r"^\| (`\w+\(.*?) \|", GUIDE.read_text(), re.MULTILINE)
    shown = {name: said for row in rows for name, said in _METHOD.findall(row)}
    assert shown == {
        name: ", ".join(map(argument, [*signature(method).parameters.values()][1:]))
        for name, method in vars(Gate).items()
        if isfunction(method) and not name.startswith("_")
    }
