"""Create a Lambda handler for an SQS queue."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.telemetry import logger, measured

_LOGGED = 2000  # characters of a message's body

With = TypeVar("With")  # what the work is done with
Work = Callable[[Adapters, str], None]
Handler = Callable[[dict[str, Any], LambdaContext], Any]


def _no_preparation(adapters: Any, body: str) -> None:
    """Do nothing before the work."""


def _no_remedy(adapters: Any, receipt: str, error: Exception) -> None:
    """Leave it to the queue when a message comes again."""


def _no_conclusion(adapters: Any) -> None:
    """Do nothing after the work."""


def sqs_handler(
    work: Callable[[With, str], None],
    adapters: Callable[[], With],
    first: Callable[[With, str], None] = _no_preparation,
    last: Callable[[With], None] = _no_conclusion,
    failed: Callable[[With, str, Exception], None] = _no_remedy,
) -> Handler:
    """Return a Lambda handler that does `work` for the body of each message of a batch.

    It returns the messages to deliver again. `adapters` is called once for a batch, and where it
    fails for each message, so that its failure fails messages and not the Lambda. `first` runs for
    every message before any `work`; its failures are ignored, as `work` repeats them. `last` runs
    once at the end, and its failure fails no message. `failed` is told the receipt and the error
    of each message that comes again; its own failure changes nothing.
    """

    @logger.inject_lambda_context
    @measured
    def handler(event: dict[str, Any], context: LambdaContext) -> Any:
        of_batch = cache(adapters)
        for record in event["Records"]:
            with suppress(Exception):  # `work` raises and logs it again
                first(of_batch(), record["body"])
        answer = process_partial_response(
            event=event,
            record_handler=partial(_process, work, failed, of_batch),
            processor=BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False),
            context=context,
        )
        _finish(last, of_batch)
        return answer

    return handler


def _process(
    work: Callable[[With, str], None],
    failed: Callable[[With, str, Exception], None],
    adapters: Callable[[], With],
    record: SQSRecord,
) -> None:
    try:
        work(adapters(), record.body)
    except Exception as error:
        body = record.body[:_LOGGED]
        logger.exception("this message will be delivered again", extra={"body": body})
        _tell(failed, adapters, record.receipt_handle, error)
        raise


def _tell(
    failed: Callable[[With, str, Exception], None],
    adapters: Callable[[], With],
    receipt: str,
    error: Exception,
) -> None:
    try:
        failed(adapters(), receipt, error)
    except Exception:  # noqa: BLE001 - the message comes again in any case
        logger.exception("the queue alone decides when the message comes again")


def _finish(last: Callable[[With], None], adapters: Callable[[], With]) -> None:
    try:
        last(adapters())
    except Exception:  # noqa: BLE001 - the messages are processed
        logger.exception("the last step failed; the sweep will do it")
