"""Exceptions that nobody foresaw, which end their own file with a reason."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent, Transient
from spark_jobs.spark.unforeseen import UNFORESEEN, explained, reason_of
from tests.unit.spark_jobs.test_confidential_errors import CLOSED, OPEN

WHAT = "the file cannot be ingested"
CELL = "Jane Doe"


def deep() -> None:
    deep()


def ended(work: Callable[[], object], contract: Contract | None = OPEN) -> LakegateError:
    """Return the error with which a file ends whose work raises an exception."""
    with pytest.raises(LakegateError) as caught, explained(WHAT, contract):
        work()
    return caught.value


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        (b"\xff".decode, "UnicodeDecodeError"),
        (lambda: dict[str, str]()[CELL], "KeyError"),
        (lambda: int(CELL), "ValueError"),
        (deep, "RecursionError"),
        (raising(SystemExit(3)), "SystemExit"),
        (raising(NotImplementedError()), "NotImplementedError"),
    ],
)
def test_every_exception_has_a_reason_that_names_it(work: Callable[[], object], kind: str) -> None:
    """Whatever is raised, the file ends with what failed, the exception, and what to do."""
    error = ended(work)
    assert isinstance(error, Permanent)
    assert error.code == UNFORESEEN
    assert error.message.startswith(f"{WHAT}: {kind} at ")
    assert "test_unforeseen.py:" in error.message
    assert "write it again" in error.message


def test_too_little_memory_is_told_as_such() -> None:
    """A file for which the memory does not suffice gets the code on which larger workers follow."""
    assert ended(raising(MemoryError())).code == "OUT_OF_MEMORY"


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), GeneratorExit()])
def test_a_stop_is_no_reason(stop: BaseException) -> None:
    """Whoever stops the process stops it: the file has no verdict then."""
    with pytest.raises(type(stop)), explained(WHAT, OPEN):
        raise stop


@pytest.mark.parametrize("error", [Permanent("A", "a"), Transient("B", "b")])
def test_a_reason_stays_as_it_is(error: LakegateError) -> None:
    """What an adapter or a reader says is neither changed nor taken for the file's fault."""
    assert ended(raising(error)) is error


@pytest.mark.parametrize("contract", [*CLOSED, None])
def test_neither_reason_nor_log_quotes_a_confidential_file(
    contract: Contract | None, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception's text may be a cell, and so may that of the one before it."""

    def work() -> None:
        try:
            int(CELL)
        except ValueError as error:
            raise KeyError(CELL) from error

    with caplog.at_level(logging.ERROR):
        error = ended(work, contract)
    assert CELL not in str(error)
    assert CELL not in caplog.text
    assert ("KeyError" in error.message, "ValueError" in caplog.text) == (True, True)


def test_an_open_file_is_quoted(caplog: pytest.LogCaptureFixture) -> None:
    """Without confidential columns the exception's text helps, and the log has its traceback."""
    assert "'Jane Doe'" in ended(lambda: int(CELL)).message
    assert "'Jane Doe'" in caplog.text
    assert "in work" not in caplog.text
    assert "test_unforeseen.py" in caplog.text


class Thrown:
    """A Java exception as Py4J shows it."""

    def __init__(self, text: str, cause: "Thrown | None" = None) -> None:
        self._target_id, self._gateway_client, self._text, self._cause = "o1", None, text, cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self._text

    def getCause(self) -> "Thrown | None":  # noqa: N802 - Java's name
        return self._cause


def thrown(*texts: str) -> Any:
    """Return the error that Py4J raises for a Java exception and its causes."""
    made = None
    for text in reversed(texts):
        made = Thrown(text, made)
    return Py4JJavaError("", made)


SPARK = "org.apache.spark.SparkException: Job aborted due to stage failure"
FRAME = "\n\tat org.apache.hadoop.fs.s3a.S3AInputStream.read(S3AInputStream.java:9)"


@pytest.mark.parametrize(
    "texts",
    [
        ["java.nio.file.AccessDeniedException: s3a://b/k: getFileStatus"],
        [
            SPARK,
            "software.amazon.awssdk.services.s3.model.S3Exception: Forbidden (Status Code: 403)",
        ],
        [SPARK, "software.amazon.awssdk.core.exception.SdkClientException: Unable to load region"],
        ["org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS Credentials provided"],
        [SPARK, "java.net.SocketException: Connection reset"],
    ],
)
def test_a_fault_of_the_lake_is_not_the_files(texts: list[str]) -> None:
    """What storage, its rights or the network refuse is retried, even while a file is read."""
    assert isinstance(reason_of(thrown(*texts), WHAT, UNFORESEEN), Transient)


@pytest.mark.parametrize(
    "texts",
    [
        ["java.lang.IllegalStateException: 7"],
        [SPARK + FRAME, "java.lang.IllegalStateException: 7"],
    ],
)
def test_what_spark_does_not_foresee_in_a_file_is_the_files(texts: list[str]) -> None:
    """Where a file is opened, an exception of no other origin is its own, whoever called whom."""
    error = reason_of(thrown(*texts), WHAT, UNFORESEEN)
    assert isinstance(error, Permanent)
    assert (error.code, "IllegalStateException" in error.message) == (UNFORESEEN, True)


def test_an_unknown_fault_elsewhere_is_retried() -> None:
    """Where rows are written, an unknown exception of Java may be a full disk."""
    error = reason_of(thrown(SPARK, "java.io.IOException: No space left on device"), WHAT)
    assert isinstance(error, Transient)
