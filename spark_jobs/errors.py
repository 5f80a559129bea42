"""Java's exceptions, translated: is the file at fault, or something that may pass?"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.tokens import TokenRefused
from spark_jobs.schema.differences import Difference
from spark_jobs.spark.jvm import causes

# What people are told of a file's own words. Pure.
#
# Where a file has lost its header the cells of its first row are the names of its columns, and
# what a reader says of a damaged file is part of it. So a contract that conceals anything has
# none of it repeated: columns are named that it declares, and others are numbered.


class Quoting(Permanent):
    """One whose words `in_full` may be the file's own; its message has none of them."""

    def __init__(self, code: str, message: str, in_full: str) -> None:
        super().__init__(code, message)
        self.in_full = in_full


def told(error: LakegateError, contract: Contract) -> LakegateError:
    """The error as people may have it who are told of a file under the contract."""
    if isinstance(error, Quoting) and contract.quotes_files:
        return Permanent(error.code, error.in_full)
    return error


@contextmanager
def telling(contract: Contract) -> Iterator[None]:
    """Have errors be as people may have them who are told of a file under the contract."""
    try:
        yield
    except Quoting as error:
        raise told(error, contract) from error


def numbered(differing: Sequence[Difference], contract: Contract) -> list[Difference]:
    """Differences from the contract as people may have them, in the same order.

    Where their names may not be told, `#1`, `#2`, … stand for the columns that it does not declare,
    and types are told without their fields.
    """
    if contract.names_columns:
        return list(differing)
    columns = (*contract.columns, *contract.nested)
    own = {_folded(column.steps) for column in columns if column.is_declared}
    numbers = (f"#{n}" for n in count(1))
    return [_plain(each, own, numbers) for each in differing]


def _plain(
    difference: Difference, own: Collection[tuple[str, ...]], numbers: Iterator[str]
) -> Difference:
    path = difference.path
    if _folded(path) not in own:
        within = path[:-1] if _folded(path[:-1]) in own else ()
        path = (*within, next(numbers))
    found, wanted = (each.partition("<")[0] for each in (difference.found, difference.wanted))
    return replace(difference, path=path, found=found, wanted=wanted)


def _folded(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(step.lower() for step in path)


_PASSING = (
    "SdkClientException",
    "AWSClientIOException",
    "AWSServiceIOException",
    "AWSStatus5",
    "ConnectException",
    "RemoteFileChangedException",
    "NoHttpResponseException",
    "SocketTimeoutException",
    "UnknownHostException",
    "ServiceFailureException",
    "ServiceUnavailableException",
    "RESTException",
)
_FILE_AT_FAULT = {
    "READ_ANCIENT_DATETIME": "AMBIGUOUS_DATES",
    "nanos > 999999999 or < 0": "UNREADABLE_TYPE",  # ORC's own mistake about times before 1970
    "PARQUET_TYPE": "UNREADABLE_TYPE",
    "Illegal Parquet type": "UNREADABLE_TYPE",
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
# Exceptions by which a library says that it does not know what it was asked to read.
_UNKNOWN = (
    "UnsupportedOperationException",
    "ClassCastException",
    "ClassNotFoundException",  # of a codec
    "NotImplementedError",
    "MatchError",
    "ParquetCryptoRuntimeException",
)
# What is known better than the exception tells it, which may show a row. Looked for first.
_KNOWN = {
    "OutOfMemoryError": (
        "OUT_OF_MEMORY",
        "a cell, a page or a block of it does not fit into the job's memory: is it damaged?",
    ),
    "[MALFORMED_CSV_RECORD]": ("CORRUPT_FILE", "a row of it has more cells than are ever read"),
    "ArrayIndexOutOfBoundsException: Index 20480": (
        "CORRUPT_FILE",
        "a row of it has more cells than are ever read",
    ),
}
BAD_VALUE = "BAD_VALUE"


class EngineFault(Quoting):
    """A file that the reader fails on within itself; `kind` says by what exception."""

    def __init__(self, what: str, kind: str) -> None:
        message = (
            f"{what}: not supported: Spark's reader fails on it by {kind}. If other programs can "
            "read the file, have it written with plain types, encodings and compression"
        )
        super().__init__("UNREADABLE_TYPE", message, message)
        self.kind = kind


# SQL's class of conditions for a value that cannot be what it is asked to be (ISO/IEC 9075, 22).
_KIND = re.compile(r"(?:[\w$]+\.)*([\w$]+)(?:: \[([A-Z0-9_.]+)\])?")
_DATA_EXCEPTION = re.compile(r"\[([A-Z_.]+)\].*SQLSTATE: 22", re.DOTALL)


def explain(error: BaseException, what: str, otherwise: str = "") -> LakegateError:
    """The error to raise for one of `jvm.JavaError`, met while doing `what`.

    Transient where the causes come from the network or a service. Permanent where they show that
    the file itself is at fault, or with the code `otherwise` where nothing else can be. What is
    known of neither is Transient: it may pass, and another run of the job finds out.
    """
    chain = causes(error)
    story = " <- ".join(chain)
    if "NotAuthorizedException" in story:  # Iceberg's name for a 401
        return TokenRefused("the job's token")
    for sign, (code, message) in _KNOWN.items():
        if sign in story:
            return Permanent(code, f"{what}: {message}")
    codes = [code for sign, code in _FILE_AT_FAULT.items() if sign in story]
    code = next(iter(codes), otherwise)
    conditions = [found[1] for text in chain if (found := _DATA_EXCEPTION.search(text))]
    if conditions and not codes:  # without the message, which tells the value
        message = f"{what}: {conditions[-1]}; where SQL casts a value, try_cast makes it null"
        return Permanent(BAD_VALUE, message)
    if not code or any(name in story for name in _PASSING):
        return Transient("JOB_FAULT", f"{what}: {story[:2000]}")
    if code == "CORRUPT_FILE" and _is_internal(chain):
        return EngineFault(what, _kind(chain[-1]))
    if code == "UNREADABLE_TYPE":
        what = f"{what}: not supported"
    return Quoting(code, f"{what}: {_kind(chain[-1])}", f"{what}: {chain[-1][:500]}")


def _is_internal(chain: list[str]) -> bool:
    """Return if the reader itself failed, rather than said that the file is damaged."""
    kind = chain[-1].partition(":")[0].rpartition(".")[2]
    if kind == "NullPointerException":
        return not any("DecodingException" in cause for cause in chain)
    return kind.removeprefix("Spark") in _UNKNOWN


def _kind(cause: str) -> str:
    """What kind of exception a cause is, without its words: its condition, or else its class."""
    found = _KIND.match(cause)
    return found[2] or found[1] if found else "an exception"
