"""The sensors run in the real Airflow and Dagster, over the fakes of a deployment."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from access.deployment.checkout import ROOT
from access.deployment.choice import find
from functions.operations.decisions.failed import publish_anyway
from lakegate.errors import LakegateError
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.job import passed, rejected
from tests.waiting import PATIENCE

pytest.importorskip("airflow", reason="`make test-integrations` installs it")

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


def opened(deployment: Deployment, *steps: Callable[[], object]) -> Callable[[str], Any]:
    """Return how a sensor reads the deployment; before each look the next step happens."""
    waiting = iter(steps)

    def adapters(stage: str) -> Any:
        assert stage == "dev"
        next(waiting, lambda: None)()
        return deployment.adapters

    return adapters


def sensor(adapters: Any, **options: Any) -> Any:
    """Return the sensor as a task of a DAG."""
    from airflow.sdk import DAG

    from lakegate.airflow import IngestionSensor

    with DAG("orders", schedule=None):
        return IngestionSensor(
            task_id="wait",
            stage="dev",
            poke_interval=0.01,
            timeout=PATIENCE,
            adapters=adapters,
            **options,
        )


def test_airflow_waits_until_a_file_is_published(deployment: Deployment) -> None:
    """The task goes on after landing and publishing, and passes on what was published."""

    def land() -> None:
        deployment.land(KEY)

    wait = sensor(opened(deployment, lambda: None, land, deployment.settle), key=KEY)
    told = wait.execute({})
    (ingestion,) = deployment.adapters.ledger.all()
    assert told == {
        "ingestion": ingestion.id,
        "tables": [TABLE],
        "rows": ingestion.audit.rows,
        "commit": ingestion.merge_hash,
    }
    again = sensor(opened(deployment), ingestion=ingestion.id)
    assert again.execute({}) == told


def test_airflow_fails_the_task_of_a_rejected_file(deployment: Deployment) -> None:
    """A rejected file fails the task at once, with the reason and without another try."""
    from airflow.sdk.exceptions import AirflowFailException

    deployment.land(KEY, script=rejected)
    deployment.settle()
    with pytest.raises(AirflowFailException, match="CHECKS_FAILED"):
        sensor(opened(deployment), key=KEY).execute({})


def test_airflow_waits_for_a_decision_on_request(deployment: Deployment) -> None:
    """With `wait_for_decision` the task ends when somebody published the file anyway."""
    deployment.land(KEY, script=rejected)
    deployment.settle()
    (found,) = deployment.adapters.ledger.all()

    def approve() -> None:
        publish_anyway(deployment.adapters, found, by="Ada", reason="a refund")
        deployment.settle()

    wait = sensor(opened(deployment, lambda: None, approve), key=KEY, wait_for_decision=True)
    assert wait.execute({})["ingestion"] == found.id


def test_airflow_keeps_the_sensor_in_its_dag() -> None:
    """Airflow serializes the DAG with the sensor, and its templates are filled in."""
    from airflow.serialization.serialized_objects import DagSerialization

    wait = sensor(find, key="shop/orders/{{ ds }}.parquet")
    (task,) = DagSerialization.to_dict(wait.dag)["dag"]["tasks"]
    assert task["__var"]["key"] == wait.key
    wait.render_template_fields({"ds": "2026-11-02"})
    assert wait.key == "shop/orders/2026-11-02.parquet"


@pytest.mark.parametrize("which", [{}, {"key": KEY, "ingestion": "a"}])
def test_airflow_needs_one_file(which: dict[str, str]) -> None:
    """A sensor without a file, or with two, is refused when the DAG is read."""
    with pytest.raises(ValueError, match="either the key"):
        sensor(find, **which)


def examples() -> list[str]:
    """Return the guide's examples in Python."""
    guide = (ROOT / "docs" / "integrations.md").read_text()
    return re.findall(r"```python\n(.*?)```", guide, re.DOTALL)


def test_the_guides_examples_work() -> None:
    """The guide's DAG has the sensor, and so have its definitions for Dagster."""
    dags, definitions = ({"__name__": "guide"}, {"__name__": "guide"})
    for code, names in zip(examples(), (dags, definitions), strict=True):
        exec(code, names)  # noqa: S102 - it is our own
    found: Any = definitions["definitions"]
    assert found.get_sensor_def("lakegate_shop_orders").minimum_interval_seconds == 60
    made: Any = dags["orders"]
    (task,) = made().tasks
    assert (task.key, task.mode) == ("shop/orders/{{ ds }}.csv", "reschedule")


def test_dagster_runs_a_job_for_each_published_file(deployment: Deployment) -> None:
    """Files that were published since the last look start one run each, with tags about them."""
    import dagster

    from lakegate.dagster import published_sensor

    seen: list[dict[str, str]] = []

    @dagster.op
    def load(context: dagster.OpExecutionContext) -> None:
        seen.append(dict(context.run_tags))

    @dagster.job
    def orders() -> None:
        load()

    wait = published_sensor(TABLE, stage="dev", job=orders, adapters=opened(deployment))
    known = dagster.Definitions(jobs=[orders], sensors=[wait])
    deployment.land(KEY)
    deployment.settle()
    with dagster.DagsterInstance.ephemeral() as instance:

        def look(cursor: str | None) -> Any:
            context = dagster.build_sensor_context(instance, cursor=cursor, definitions=known)
            return wait.evaluate_tick(context)

        began = look(None)
        assert (began.run_requests, bool(began.cursor)) == ([], True)
        for name, script in (("b", passed), ("c", rejected), ("d", passed)):
            deployment.land(f"shop/orders/{name}.parquet", name.encode(), script)
            deployment.settle()
        asked = look(began.cursor)
        for request in asked.run_requests:
            tags = {k: v for k, v in request.tags.items() if not k.startswith("dagster/")}
            orders.execute_in_process(instance=instance, tags=tags)
        assert len({request.run_key for request in asked.run_requests}) == 2
        assert look(asked.cursor).run_requests == []
    assert [each["lakegate/object"][-9:] for each in seen] == ["b.parquet", "d.parquet"]
    assert all(int(each["lakegate/rows"]) > 0 for each in seen)


def test_a_missing_deployment_is_told(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an explicit way in, a sensor opens the stage as the commands do."""
    from lakegate.airflow import IngestionSensor

    monkeypatch.setenv("LAKEGATE_HOME", str(tmp_path))
    monkeypatch.delenv("LAKEGATE_LEDGER_TABLE", raising=False)
    with pytest.raises(LakegateError, match="lakegate up"):
        IngestionSensor(task_id="wait", key=KEY).poke({})
