"""Give every exception its reason: nobody foresees all that a file does to its readers.

An exception of an adapter is a LakegateError already and says whether a retry may help. Any other
one in Python was raised by what the file holds, or by a mistake of ours: both come again.
"""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent
from spark_jobs.spark.errors import Quoting, explain, masked

UNFORESEEN = "UNFORESEEN"
_OWN = Path(__file__).parent.parent
_LONGEST = 300
_ADVICE = (
    "If other programs can read the file, write it again with plain types and settings; the log "
    "has the details"
)

_logger = logging.getLogger(__name__)


@contextmanager
def explained(what: str, contract: Contract | None, otherwise: str = "") -> Iterator[None]:
    """Raise every exception as the LakegateError with which a file ends; `what` says what failed.

    Confidential content of the file is masked, all of it without a contract. Java's exceptions
    without another code get `otherwise`; without that, they are Transient once rows were read, as a
    disk may be full. What stops the process, as KeyboardInterrupt, passes;
    and so does every exception once Spark itself has ended, as it says nothing about the file.
    """
    try:
        yield
    except Quoting as error:
        raise masked(error, contract) from error
    except LakegateError:
        raise
    except (Exception, SystemExit) as error:
        reason = reason_of(error, what, otherwise)
        _logger.error("%s\n%s", what, _origin(error, contract))  # noqa: TRY400 - without its text
        raise masked(reason, contract) from error


@contextmanager
def reading(contract: Contract) -> Iterator[None]:
    """Do the same where a file is opened: what nobody foresees there is the file's own fault."""
    with explained("the file cannot be opened", contract, UNFORESEEN):
        yield


def reason_of(error: BaseException, what: str, otherwise: str = "") -> LakegateError:
    """Return the error with which a file ends; raise what was raised once Spark has ended."""
    from spark_jobs.spark import jvm  # drafts of contracts are tried without Spark

    if jvm.has_ended():
        raise error
    if isinstance(error, jvm.JavaError):
        code = otherwise or (UNFORESEEN if jvm.is_unplanned(error) else "")
        return _with_advice(explain(error, what, code))
    if isinstance(error, MemoryError):
        message = f"{what}: a cell, page or block of the file does not fit into memory"
        return Permanent("OUT_OF_MEMORY", message)
    plain = f"{what}: {type(error).__name__} at {_place(error)}, which Lakegate does not foresee"
    text = str(error)[:_LONGEST]
    return _with_advice(Quoting(UNFORESEEN, plain, f"{plain} ({text})" if text else plain))


def _with_advice(error: LakegateError) -> LakegateError:
    if not isinstance(error, Quoting) or error.code != UNFORESEEN:
        return error
    return Quoting(UNFORESEEN, f"{error.message}. {_ADVICE}", f"{error.in_full}. {_ADVICE}")


def _place(error: BaseException) -> str:
    """Return the last line of the job's own code that the exception came through."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [each for each in every if each.filename != __file__]
    own = [each for each in frames if Path(each.filename).is_relative_to(_OWN)] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "no line"


def _origin(error: BaseException, contract: Contract | None) -> str:
    """Return the traceback, without the exceptions' texts where these may be confidential."""
    if contract and contract.quotes_files:
        return "".join(traceback.format_exception(error))
    return "".join(_lines(error))


def _lines(error: BaseException) -> Iterator[str]:
    before = error.__cause__ or error.__context__
    if before:
        yield from _lines(before)
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__name__}\n"
