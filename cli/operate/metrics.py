"""`lakegate metrics`: print measures in the text format that Prometheus reads.

Each is a gauge: the ledger is the record, and a counter would begin anew with each call (Prometheus
documentation, "Exposition formats").
"""

import re
from collections.abc import Iterable, Iterator

import typer

from access.deployment.choice import find
from access.ingestions.measures import Measure, measures
from cli.console import terminal

_PREFIX = "lakegate"
_ESCAPED = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


def metrics(context: typer.Context) -> None:
    """Print files, rows, decisions that wait and late tables for Prometheus."""
    deployment = find(context.obj)
    adapters = deployment.adapters()
    figures = measures(adapters.ledger, adapters.now())
    terminal.raw(text(figures, deployment.settings.stage))


def text(figures: Iterable[Measure], stage: str) -> str:
    """Return measures as Prometheus's text, each with the deployment's stage."""
    return "".join(f"{line}\n" for measure in figures for line in _lines(measure, stage))


def _lines(measure: Measure, stage: str) -> Iterator[str]:
    name = f"{_PREFIX}_{measure.name}"
    yield f"# HELP {name} {measure.about}"
    yield f"# TYPE {name} gauge"
    for labels, value in sorted(measure.values.items()):
        shown = ",".join(f'{key}="{_escaped(v)}"' for key, v in (("stage", stage), *labels))
        yield f"{name}{{{shown}}} {value:.17g}"


def _escaped(value: str) -> str:
    return re.sub(r'[\\"\n]', lambda match: _ESCAPED[match[0]], value)
