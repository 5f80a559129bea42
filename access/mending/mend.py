"""Write out the broken rows of a rejected file, and land the file again with corrected ones."""

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from access.evidence.failing_rows import audit_of, concealment, contract_of
from access.mending.csv_rows import CsvRows
from access.mending.json_rows import JsonItems, JsonRows
from access.mending.records import BadCorrection, Rows, Text, mended
from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, Overwritten
from functions.model.decisions import Mends
from functions.model.ingestion import Ingestion
from functions.operations.decisions.mended import land, require_mendable
from lakegate.audit import causes
from lakegate.audit.broken_rows import BrokenRows
from lakegate.audit.report import HAS_ROWS, QUARANTINE_LIMIT, READABLE, AuditReport
from lakegate.contract.model import Contract
from lakegate.contract.reading.settings import FLAT_FORMATS
from lakegate.errors import LakegateError
from lakegate.limits import Limits

# Takes a contract, a file, the ids of its failed checks, and limits.
Find = Callable[[Contract, Path, Collection[str], Limits], BrokenRows]
_NOTHING = "Nothing was uploaded."
_ELSE = "Correct the whole file, and drop it again."


@dataclass(frozen=True)
class Written:
    """The broken rows that were written out.

    They are counted by `unit`. `others` says what failed besides, which no row mends. With
    `is_secret` they have values that the contract hides elsewhere.
    """

    rows: int
    unit: str
    others: tuple[str, ...] = ()
    is_secret: bool = False


@dataclass(frozen=True)
class Mended:
    """A mended file's ingestion, and how many broken rows were changed, removed, or left."""

    ingestion: Ingestion
    replaced: int
    removed: int
    left: int
    unit: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rejected:
    """A rejected file, copied to this machine, and its broken rows."""

    contract: Contract
    copy: Path
    text: Text
    rows: Rows
    broken: BrokenRows
    others: tuple[str, ...]


def write_broken(adapters: Adapters, rejected: Ingestion, out: Path, find: Find) -> Written:
    """Write the broken rows of a rejected file into a new file, which only its owner can read.

    Raises LakegateError: what `require_mendable` does, NOT_BY_ROWS where no row can mend it,
    FILE_EXISTS, UNWRITABLE_FILE, and what `find` raises.
    """
    if out.exists():
        message = f"{out} exists: it may have rows that were corrected\nGive another --out."
        raise LakegateError("FILE_EXISTS", message)
    if not out.parent.is_dir():  # else this is known only once all rows are found
        message = f"there is no folder {out.parent}\nMake it, or give another --out."
        raise LakegateError("UNWRITABLE_FILE", message)
    with _opened(adapters, rejected, find) as opened:
        hides = concealment(adapters, opened.contract, rejected.terms.contract_key)
        _write(opened, out)
        many, unit = len(opened.broken.reasons), opened.broken.unit
        return Written(many, unit, opened.others, is_secret=hides.every or bool(hides.columns))


def _write(rejected: _Rejected, out: Path) -> None:
    try:
        out.touch(0o600, exist_ok=False)
        with out.open("wb") as stream, rejected.text.read(rejected.copy) as lines:
            rows = rejected.rows.written(rejected.rows.records(lines), rejected.broken)
            rejected.text.write(stream, rows, plain=True)
    except OSError as error:
        message = f"cannot write all of {out}: {error.strerror}\nDelete it before you try again."
        raise LakegateError("UNWRITABLE_FILE", message) from error


def mend(
    adapters: Adapters,
    rejected: Ingestion,
    file: Path,
    find: Find,
    *,
    by: str = "",
    drop_missing: bool = False,
) -> Mended:
    """Land a rejected file again, with the rows of `file` in the places of broken ones.

    With `drop_missing` broken rows that it leaves out are removed; else they stay as they are.
    Raises LakegateError as `write_broken`, and UNREADABLE_FILE, BAD_CORRECTION or NOTHING_MENDED.
    """
    with _opened(adapters, rejected, find) as opened:
        texts = _corrected(opened, file, rejected.name)
        missing = opened.broken.reasons.keys() - texts.keys()
        removed = missing if drop_missing else set()
        changed = _changed(opened, texts)
        if not removed and not changed:
            message = f"{file} changes no row of {rejected.name}\n{_NOTHING}"
            raise LakegateError("NOTHING_MENDED", message)
        made = opened.copy.with_name("mended")
        _join(opened, texts, removed, made)
        landed = land(adapters, rejected, made, Mends(rejected.id, file.name, by.strip()))
        left = len(opened.broken.reasons) - len(removed) - changed
        return Mended(landed, changed, len(removed), left, opened.broken.unit, opened.others)


def _corrected(rejected: _Rejected, file: Path, name: str) -> dict[int, str]:
    """Return the corrected rows by their numbers in the landed file. Raises LakegateError."""
    texts: dict[int, str] = {}
    try:
        with rejected.text.read(file) as lines, rejected.text.read(rejected.copy) as original:
            for each in rejected.rows.corrections(lines, rejected.rows.records(original)):
                row = f"{rejected.broken.unit} {each.number:,} of {name}"
                if each.number not in rejected.broken.reasons:
                    raise BadCorrection(each.line, f"{row} is not one of its broken rows")
                if each.number in texts:
                    raise BadCorrection(each.line, f"{row} comes a second time")
                texts[each.number] = each.text
    except BadCorrection as error:
        raise LakegateError(error.code, f"{file}, {error.message}\n{_NOTHING}") from error
    except UnicodeError as error:
        message = f"{file} is not text in {rejected.contract.options['encoding']}\n{_NOTHING}"
        raise LakegateError("BAD_CORRECTION", message) from error
    except (OSError, EOFError, zlib.error) as error:
        message = f"cannot read {file}: {error}\n{_NOTHING}"
        raise LakegateError("UNREADABLE_FILE", message) from error
    return texts


def _changed(rejected: _Rejected, texts: Mapping[int, str]) -> int:
    """Return how many rows have another text than in the landed file."""
    with rejected.text.read(rejected.copy) as lines:
        rows = rejected.rows.records(lines)
        return sum(texts.get(row.number, row.text) != row.text for row in rows)


def _join(
    rejected: _Rejected, texts: Mapping[int, str], removed: Collection[int], made: Path
) -> None:
    with rejected.text.read(rejected.copy) as lines, made.open("wb") as stream:
        rejected.text.write(stream, mended(rejected.rows.records(lines), texts, removed))


@contextmanager
def _opened(adapters: Adapters, rejected: Ingestion, find: Find) -> Iterator[_Rejected]:
    """Copy a rejected file to this machine, and find its broken rows. Raises LakegateError."""
    require_mendable(adapters, rejected)
    report = audit_of(adapters, rejected)
    contract = contract_of(adapters, rejected.terms.contract, report)
    named, others = _failed(report, contract)
    _require_text(contract)
    if not named:
        raise _not_by_rows(others)
    limits = adapters.settings.limits
    with TemporaryDirectory(prefix="lakegate-") as folder:
        copy = Path(folder, "landed")
        _download(adapters, rejected, copy)
        broken = find(contract, copy, named, limits)
        if not broken.reasons:
            raise _not_by_rows(others)
        text = Text.of(copy, contract.options.get("encoding", "UTF-8"))
        rows: Rows = (JsonItems if broken.unit == JsonItems.unit else JsonRows)(contract)
        if contract.format in FLAT_FORMATS:
            rows = CsvRows(contract, text, broken.spans)
        yield _Rejected(contract, copy, text, rows, broken, others)


def _failed(report: AuditReport, contract: Contract) -> tuple[set[str], tuple[str, ...]]:
    """Return the ids of the failed checks that rows break, and what the others found."""
    of_rows = {READABLE, *(check.id for check in contract.checks if check.names_rows)}
    broken = {each.id for each in report.failed} & of_rows
    told = of_rows | ({QUARANTINE_LIMIT, HAS_ROWS} if broken else set())
    others = (causes.finding(vars(each)) for each in report.failed if each.id not in told)
    return broken, tuple(dict.fromkeys(others))


def _require_text(contract: Contract) -> None:
    if contract.transform:
        message = "the contract's transform makes rows that are not those of the landed file"
        raise LakegateError("NOT_BY_ROWS", f"{message}\n{_ELSE}")
    if contract.format not in (*FLAT_FORMATS, "json"):
        message = f"{contract.format} files cannot be mended row by row, only CSV, TSV and JSON"
        raise LakegateError("NOT_BY_ROWS", f"{message}\n{_ELSE}")


def _not_by_rows(others: Collection[str]) -> LakegateError:
    details = f": {'; '.join(others)}" if others else ""
    return LakegateError("NOT_BY_ROWS", f"no row can be mended alone{details}\n{_ELSE}")


def _download(adapters: Adapters, rejected: Ingestion, copy: Path) -> None:
    try:
        adapters.landing.download(rejected.landed, copy)
    except (Missing, Overwritten) as error:
        message = f"the rejected version of {rejected.name} is gone\n{_ELSE}"
        raise LakegateError("OBJECT_GONE", message) from error
    except OSError as error:
        message = f"cannot copy {rejected.name} to this machine: {error.strerror}"
        raise LakegateError("UNWRITABLE_FILE", message) from error
