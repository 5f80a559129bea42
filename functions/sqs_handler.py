"""A Lambda handler for a queue of messages."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.telemetry import logger, metrics

_LOGGED = 2000  # characters of a message's body

With = TypeVar("With")  # what the work is done with
Work = Callable[[Adapters, str], None]
Handler = Callable[[dict[str, Any], LambdaContext], Any]


def _nothing(adapters: Any, body: str) -> None:
    """Nothing needs to be done first."""


def _nothing_more(adapters: Any) -> None:
    """Nothing is left to do at last."""


def sqs_handler(
    work: Callable[[With, str], None],
    adapters: Callable[[], With],
    first: Callable[[With, str], None] = _nothing,
    last: Callable[[With], None] = _nothing_more,
) -> Handler:
    """A Lambda handler that does `work` for the body of each message of a batch.

    It answers which messages must be delivered again; the others are done. `adapters` is asked for
    each message, so that one that cannot be made yet fails the messages and not the Lambda.
    `first` is done for every message before `work` is for any; what fails there is left to `work`.
    `last` is done once after them, and fails no message.
    """

    def work_off(record: SQSRecord) -> None:
        try:
            work(adapters(), record.body)
        except Exception:
            body = record.body[:_LOGGED]
            logger.exception("this message will be delivered again", extra={"body": body})
            raise

    @logger.inject_lambda_context
    @metrics.log_metrics
    def handler(event: dict[str, Any], context: LambdaContext) -> Any:
        for record in event["Records"]:
            with suppress(Exception):  # the work itself raises it again, and tells it
                first(adapters(), record["body"])
        answer = process_partial_response(
            event=event,
            record_handler=work_off,
            processor=BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False),
            context=context,
        )
        _finish(last, adapters)
        return answer

    return handler


def _finish(last: Callable[[With], None], adapters: Callable[[], With]) -> None:
    try:
        last(adapters())
    except Exception:  # noqa: BLE001 - whatever it is, the messages are worked off
        logger.exception("what was to be done last is left to the sweep")
