"""The metrics that a function writes to its log."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.telemetry import measured
from tests.fakes.lambda_context import Context

Written = list[tuple[str, float, dict[str, str]]]


def metrics_of(work: Callable[[], Any], capsys: pytest.CaptureFixture[str]) -> Written:
    """Do the work as a handler; return each metric's name, the sum of its values, its dimensions.

    What was counted before is no part of them.
    """
    measured(lambda event, context: None)({}, Context())
    capsys.readouterr()
    measured(lambda event, context: work())({}, Context())
    return metrics(capsys.readouterr().out)


def metrics(out: str) -> Written:
    """Return the metrics in a handler's output."""
    lines = [json.loads(line) for line in out.splitlines() if '"_aws"' in line]
    return [
        (metric["Name"], sum(line[metric["Name"]]), {each: line[each] for each in dimensions})
        for line in lines
        for told in line["_aws"]["CloudWatchMetrics"]
        for dimensions in told["Dimensions"]
        for metric in told["Metrics"]
    ]
