"""Lambda: the queue of S3's event notifications. Takes in each landed object."""

from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.events import landed_objects
from functions.story import take_in
from functions.telemetry import logger, metrics
from functions.wiring import world


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Answer which messages of the batch must be delivered again; the others are done."""
    return process_partial_response(
        event=event,
        record_handler=_take_in,
        processor=BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False),
        context=context,
    )


def _take_in(record: SQSRecord) -> None:
    for landed in landed_objects(record.body):
        take_in(world(), landed)
