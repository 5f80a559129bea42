"""The text of a file, cut into its rows without a change, and with others in their places."""

import gzip
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, Protocol, TextIO, cast

from lakegate.audit.broken_rows import BrokenRows
from lakegate.errors import LakegateError
from spark_jobs.files.text.sniff import is_gzip

MARK = "\ufeff"  # the byte order mark at the beginning of a file
_BIG_ENDIAN = b"\xfe\xff"


@dataclass(frozen=True)
class Record:
    """A piece of a file's text, with the line end behind it.

    `number` is that of a row, as broken rows are counted; 0 for what is none.
    """

    number: int
    text: str
    end: str = ""


@dataclass(frozen=True)
class Correction:
    """The text for the row of that number in the landed file; `line` is its own in its file."""

    line: int
    number: int
    text: str


class BadCorrection(LakegateError):
    """A file of corrected rows is not as it was written out."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__("BAD_CORRECTION", f"line {line:,}: {problem}")


class Rows(Protocol):
    """The rows of one landed file, in its format."""

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        """Yield all of a file's text, cut into rows."""

    def written(self, records: Iterable[Record], broken: BrokenRows) -> Iterator[str]:
        """Yield the text of a file with the broken rows, each with its number and reasons."""

    def corrections(self, lines: Iterable[str], records: Iterable[Record]) -> Iterator[Correction]:
        """Yield the rows of such a file, made of `records`. Raises BadCorrection."""


@dataclass(frozen=True)
class Text:
    """How a landed file is text: its codec, which keeps what it cannot read, and its packing."""

    codec: str
    errors: str
    gzipped: bool

    @classmethod
    def of(cls, file: Path, encoding: str) -> "Text":
        """Return how a file is text in an encoding of contracts."""
        with file.open("rb") as stream:
            gzipped = is_gzip(stream.read(2))
        # Each keeps what is no text: bytes of UTF-8, halves of characters of UTF-16.
        errors = "surrogateescape" if encoding == "UTF-8" else "surrogatepass"
        if encoding == "UTF-16":  # the mark stays a character, so that it is kept as it is
            with _unpacked(file) as text:
                encoding = "utf-16-be" if text.read(2) == _BIG_ENDIAN else "utf-16-le"
        return cls(encoding, errors, gzipped)

    @contextmanager
    def read(self, file: Path) -> Iterator[TextIO]:
        """Open a file's text, with its line ends as they are, packed or not."""
        with _unpacked(file) as stream, self._wrapped(stream) as text:
            yield text

    def write(self, stream: BinaryIO, texts: Iterable[str], *, plain: bool = False) -> None:
        """Write text to a stream, packed as the landed file is unless it is to be `plain`."""
        with ExitStack() as opened:
            if self.gzipped and not plain:
                packed = gzip.GzipFile("", "wb", fileobj=stream, mtime=0)  # always the same bytes
                stream = cast(BinaryIO, opened.enter_context(packed))
            text = self._wrapped(stream)
            text.writelines(texts)
            text.flush()
            text.detach()

    def shown(self, text: str) -> str:
        """Return a text of our own as far as the encoding has its characters."""
        return text.encode(self.codec, "replace").decode(self.codec)

    def _wrapped(self, stream: BinaryIO) -> TextIOWrapper:
        return TextIOWrapper(stream, self.codec, self.errors, newline="")


@contextmanager
def _unpacked(file: Path) -> Iterator[BinaryIO]:
    """Open a file's bytes, packed or not."""
    with ExitStack() as opened:
        stream: BinaryIO = opened.enter_context(file.open("rb"))
        packed = is_gzip(stream.read(2))
        stream.seek(0)
        yield cast(BinaryIO, opened.enter_context(gzip.open(stream))) if packed else stream


def unmarked(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line and, with the first one, the mark before it."""
    for number, line in enumerate(lines):
        mark = MARK if number == 0 and line.startswith(MARK) else ""
        yield mark, line.removeprefix(mark)


def record(number: int, line: str) -> Record:
    """Return a line, or several lines of one row, as a record."""
    text = line.rstrip("\r\n")
    return Record(number, text, line[len(text) :])


def marks(unit: str, taken: Collection[str]) -> tuple[str, str]:
    """Return the names of a row's number and of its reasons, which are not `taken`, in any case."""
    known = {name.lower() for name in taken}
    names = f"_{unit}", "_reason"
    while known & {*names}:
        names = f"{names[0]}_", f"{names[1]}_"
    return names


def mended(
    records: Iterable[Record], texts: Mapping[int, str], removed: Collection[int]
) -> Iterator[str]:
    """Yield the text of a file with other texts in the places of some rows, and without others.

    Raises LakegateError MOVED_ROWS if one of them is not there.
    """
    left, before = {*texts, *removed}, Record(0, "")
    for each in records:
        left.discard(each.number)
        if each.number not in removed:
            yield before.text + before.end
            before = replace(each, text=texts.get(each.number, each.text))
        elif before.number:  # no comma may stand behind the last item of an array
            before = replace(before, end=each.end)
    yield before.text + before.end
    if left:
        message = f"the file has no row {min(left):,}: this is a bug in Lakegate"
        raise LakegateError("MOVED_ROWS", message)
