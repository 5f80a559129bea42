"""A sensor for Airflow: a task waits until a landed file is published (extra `airflow`)."""

from collections.abc import Callable, Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException

from access.deployment.choice import find
from access.sensors.arrivals import NotPublished, is_published, known, landed
from functions.adapters.all import Adapters


class IngestionSensor(BaseSensorOperator):
    """A task that succeeds when a file is on main; its XCom is what was published.

    Name the file by its `key` in the landing bucket, or by its address (`s3://bucket/key`) in a
    bucket of others; its newest version counts. Or name the `ingestion`, a whole id. A file that is
    rejected, errored, ignored or discarded fails the task at once, without another try. With
    `wait_for_decision` the task goes on to wait for a person who replays or approves the file.
    `stage` is a stage on AWS; by default the environment decides.
    """

    template_fields: Sequence[str] = ("key", "ingestion", "stage")

    def __init__(
        self,
        *,
        key: str = "",
        ingestion: str = "",
        stage: str = "",
        wait_for_decision: bool = False,
        adapters: Callable[[str], Adapters] = lambda stage: find(stage).adapters(),
        **options: Any,
    ) -> None:
        """Raise ValueError unless exactly one of `key` and `ingestion` is given."""
        super().__init__(**options)
        if bool(key) == bool(ingestion):
            raise ValueError("give either the key of a landed file, or an ingestion's id")
        self.key = key
        self.ingestion = ingestion
        self.stage = stage
        self.wait_for_decision = wait_for_decision
        self._adapters = adapters

    def poke(self, context: Any) -> PokeReturnValue:
        """Return if the file is published, and then its ingestion."""
        adapters = self._adapters(self.stage)
        bucket = adapters.settings.landing_bucket
        ingestion = (
            landed(adapters.ledger, bucket, self.key)
            if self.key
            else known(adapters.ledger, self.ingestion)
        )
        try:
            done = is_published(ingestion, patient=self.wait_for_decision)
        except NotPublished as ended:
            raise AirflowFailException(ended.message) from ended
        if not (done and ingestion):
            return PokeReturnValue(is_done=False)
        told = {
            "ingestion": ingestion.id,
            "tables": list(ingestion.tables),
            "rows": ingestion.audit.rows,
            "commit": ingestion.merge_hash,
        }
        return PokeReturnValue(is_done=True, xcom_value=told)
