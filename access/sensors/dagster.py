"""A sensor for Dagster: a published file of a table starts a run (extra `dagster`)."""

from collections.abc import Callable
from typing import Any

from dagster import RunRequest, SensorDefinition, SensorEvaluationContext, SensorResult, SkipReason

from access.deployment.choice import find
from access.sensors.arrivals import Arrival, gained
from functions.adapters.all import Adapters


def published_sensor(
    table: str,
    *,
    stage: str = "",
    adapters: Callable[[str], Adapters] = lambda stage: find(stage).adapters(),
    **options: Any,
) -> SensorDefinition:
    """Return a sensor that requests a run for each file of a table that is published from now on.

    `options` are those of Dagster's sensors, such as `job` or `asset_selection`. A run has tags:
    `lakegate/ingestion`, `lakegate/object`, `lakegate/rows` and `lakegate/commit`. Dagster starts
    one run for each ingestion and commit, however often it is asked. The cursor is main's commit.
    `stage` is a stage on AWS; by default the environment decides.
    """

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        arrivals, newest = gained(adapters(stage).catalog, table, context.cursor or "")
        if not arrivals:
            why = f"no file of {table} was published since {context.cursor or 'now'}"
            return SensorResult(skip_reason=SkipReason(why), cursor=newest)
        return SensorResult(run_requests=[_request(each) for each in arrivals], cursor=newest)

    named = {"name": f"lakegate_{table.replace('.', '_')}", **options}
    return SensorDefinition(evaluation_fn=evaluate, **named)


def _request(arrival: Arrival) -> RunRequest:
    tags = {f"lakegate/{name}": str(value) for name, value in vars(arrival).items()}
    return RunRequest(run_key=f"{arrival.ingestion}-{arrival.commit}", tags=tags)
