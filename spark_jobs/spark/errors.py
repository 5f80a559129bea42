"""Translate Java's exceptions into Permanent (the file's fault) and Transient errors."""

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.refusals import RightMissing
from lakegate.tokens import TokenRefused

_T = TypeVar("_T")


class Quoting(Permanent):
    """A permanent error whose text `in_full` may quote the file; its message does not.

    A reader's exception may quote a row of the file, whose contract may have confidential columns.
    """

    def __init__(self, code: str, message: str, in_full: str) -> None:
        super().__init__(code, message)
        self.in_full = in_full


def masked(error: LakegateError, contract: Contract | None) -> LakegateError:
    """Return the error in full, or, also without a contract, without content of the file."""
    if isinstance(error, Quoting) and contract and contract.quotes_files:
        return Permanent(error.code, error.in_full)
    return error


def returned(outcomes: Iterable[_T | Exception]) -> list[_T]:
    """Return what tasks have made; raise an error among it, which a task can only return."""
    made: list[_T] = []
    for each in outcomes:
        if isinstance(each, Exception):
            raise each
        made.append(each)
    return made


# Where exceptions of storage, of its rights, of the catalog and of the network come from. One that
# tells of the file's end is thrown there, too.
_OUTSIDE = (
    "software.amazon.awssdk.",
    "org.apache.hadoop.fs.s3a.",
    "org.apache.hadoop.net.",
    "org.apache.http.",
    "java.net.",
    "java.nio.file.AccessDeniedException",
    "[SPARK_JOB_CANCELLED]",  # who cancelled it says why
    *(
        f"org.apache.iceberg.exceptions.{name}Exception"
        for name in ("REST", "Forbidden", "ServiceFailure", "ServiceUnavailable")
    ),
)
# By the class, as a message may quote a file. Hadoop's own, the catalog's 403, and S3's.
_DENIED = re.compile(
    r"[\w.$]*(AccessDeniedException|ForbiddenException)\b"
    r"|[\w.$]*S3Exception: .*Status Code: 403",
    re.DOTALL,
)
_LONGEST_CAUSE = 300
_FILE_AT_FAULT = {
    "READ_ANCIENT_DATETIME": "AMBIGUOUS_DATES",
    "nanos > 999999999 or < 0": "UNREADABLE_TYPE",  # ORC's own mistake about times before 1970
    "PARQUET_TYPE": "UNREADABLE_TYPE",
    "Illegal Parquet type": "UNREADABLE_TYPE",
    "UNSUPPORTED_TIME_TYPE": "UNREADABLE_TYPE",
    "Invalid map type": "UNREADABLE_TYPE",
    "Invalid list type": "UNREADABLE_TYPE",
    "is not a Parquet file": "CORRUPT_FILE",
    "CANNOT_READ_FILE_FOOTER": "CORRUPT_FILE",
    "FAILED_READ_FILE": "CORRUPT_FILE",
    "ParquetDecodingException": "CORRUPT_FILE",
    "ParquetRuntimeException": "CORRUPT_FILE",
    "could not verify page integrity": "CORRUPT_FILE",
    "EOFException": "CORRUPT_FILE",
    "ZipException": "CORRUPT_FILE",
    "can not read class org.apache.parquet": "CORRUPT_FILE",
    "NegativeArraySizeException": "CORRUPT_FILE",
    "Invalid footer": "CORRUPT_FILE",
    "org.apache.avro.": "CORRUPT_FILE",
}
# Exceptions of a library for types, codecs or encryption that it does not know.
_UNKNOWN = (
    "UnsupportedOperationException",
    "ClassCastException",
    "ClassNotFoundException",  # of a codec
    "NotImplementedError",
    "MatchError",
    "ParquetCryptoRuntimeException",
)
TOO_MANY_DIGITS = "a decimal has more digits than its column declares"
# Looked up first: these messages are clearer than the exception's, which may quote a row.
_KNOWN = {
    "OutOfMemoryError": (
        "OUT_OF_MEMORY",
        "a cell, page or block of the file does not fit into memory: the file may be damaged",
    ),
    TOO_MANY_DIGITS: (
        "CORRUPT_FILE",
        f"{TOO_MANY_DIGITS}: declare the digits that the values have",
    ),
    "Invalid UUID string": ("BAD_VALUE", "a text is no UUID, as the table's column holds them"),
    "Fixed Binary size": ("BAD_VALUE", "a value has not the length that the table's column fixes"),
    "[MALFORMED_CSV_RECORD]": ("CORRUPT_FILE", "a row has more cells than Spark can read"),
    "ArrayIndexOutOfBoundsException: Index 20480": (
        "CORRUPT_FILE",
        "a row has more cells than Spark can read",
    ),
}
BAD_VALUE = "BAD_VALUE"


# SQL's class 22, data exceptions, such as a value that cannot be cast (ISO/IEC 9075).
_KIND = re.compile(r"(?:[\w$]+\.)*([\w$]+)(?:: \[([A-Z0-9_.]+)\])?")
_CONDITION, _OF_DATA = re.compile(r"\[([A-Z_.]+)\]"), "SQLSTATE: 22"


def explain(error: BaseException, what: str, otherwise: str = "") -> LakegateError:
    """Return the error to raise for one of `jvm.JavaError`; `what` says what failed.

    Causes in the network or a service are Transient. Causes in the file are Permanent, with the
    code `otherwise` where no other code fits. Unknown causes are Transient, because a retry may
    help.
    """
    from spark_jobs.spark.jvm import causes  # drafts of contracts are tried without Spark

    chain = causes(error)
    story = " <- ".join(chain)
    if refused := _refused(chain, what):
        return refused
    for sign, (code, message) in _KNOWN.items():
        if sign in story:
            return Permanent(code, f"{what}: {message}")
    codes = [code for sign, code in _FILE_AT_FAULT.items() if sign in story]
    code = next(iter(codes), otherwise)
    told = (text.rpartition(_OF_DATA)[0] for text in chain)  # what precedes it, "" without
    conditions = [match[1] for text in told if (match := _CONDITION.search(text))]
    if conditions and not codes:  # without the message, which has the value
        message = f"{what}: {conditions[-1]}; where SQL casts a value, use try_cast to make it null"
        return Permanent(BAD_VALUE, message)
    if not code or _is_of_outside(chain):
        return Transient("JOB_FAULT", f"{what}: {story[:2000]}")
    if code == "CORRUPT_FILE" and _is_internal(chain):
        message = (
            f"{what}: not supported: Spark's reader fails on it with {_kind(chain[-1])}. If other "
            "programs can read the file, write it with plain types, encodings and compression"
        )
        return Permanent("UNREADABLE_TYPE", message)
    if code == "UNREADABLE_TYPE":
        what = f"{what}: not supported"
    return Quoting(code, f"{what}: {_kind(chain[-1])}", f"{what}: {chain[-1][:500]}")


def _refused(chain: Sequence[str], what: str) -> LakegateError | None:
    """Return the error if the catalog or S3 refused the job, whatever else the chain says.

    Spark wraps such an exception as that of a file that it cannot read.
    """
    if any("NotAuthorizedException" in cause for cause in chain):  # Iceberg's name for a 401
        return TokenRefused("the job's token")
    denied = next(filter(_DENIED.match, chain), "")
    if not denied:
        return None
    refusal = denied.partition(":")[0].rpartition(".")[2]
    needed = f"what it needs: {what}: {denied[:_LONGEST_CAUSE]}"
    return RightMissing(f"the job's role lacks a right ({refusal}) on {needed}")


def _is_of_outside(chain: list[str]) -> bool:
    """Return if an exception came from outside; the frames in its text only tell who called."""
    thrown = [line for text in chain for line in text.split("\n") if not line.startswith("\tat ")]
    told = [line for line in thrown if any(origin in line for origin in _OUTSIDE)]
    return bool(told) and not any("EOFException" in line for line in told)


def _is_internal(chain: list[str]) -> bool:
    """Return if the reader failed within itself, instead of reporting a damaged file."""
    kind = chain[-1].partition(":")[0].rpartition(".")[2]
    if kind == "NullPointerException":
        return not any("DecodingException" in cause for cause in chain)
    return kind.removeprefix("Spark") in _UNKNOWN


def _kind(cause: str) -> str:
    """Return an exception's condition, or else its class, without its message."""
    matched = _KIND.match(cause)
    return matched[2] or matched[1] if matched else "an exception"
