"""Lambda: the queue of EMR Serverless's state changes. Publishes, or tells people why not."""

from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.events import ended_run
from functions.story import conclude
from functions.telemetry import logger, metrics
from functions.wiring import world


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Answer which messages of the batch must be delivered again; the others are done."""
    return process_partial_response(
        event=event,
        record_handler=_conclude,
        processor=BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False),
        context=context,
    )


def _conclude(record: SQSRecord) -> None:
    conclude(world(), ended_run(record.body))
