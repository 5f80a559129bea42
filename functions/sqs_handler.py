"""Create a Lambda handler for an SQS queue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


def _nothing(*_: Any) -> None:
    """Do nothing before the work, after it, or about its failure."""


def sqs_handler(
    work: Callable[[With, str], None],
    adapters: Callable[[], With],
    first: Callable[[With, str], None] = _nothing,
    last: Callable[[With], None] = _nothing,
    failed: Callable[[With, str, Exception], None] = _nothing,
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
        with _logged("the last step failed; the sweep will do it"):
            last(of_batch())
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
        with _logged("the queue alone decides when the message comes again"):
            failed(adapters(), record.receipt_handle, error)
        raise


@contextmanager
def _logged(failure: str) -> Iterator[None]:
    """Only log what fails: it changes no message's fate."""
    try:
        yield
    except Exception:  # noqa: BLE001 - the messages are processed, or come again in any case
        logger.exception(failure)
