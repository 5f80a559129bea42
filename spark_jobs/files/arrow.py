"""Decode a Parquet file with Arrow, one row group at a time.

Only the bytes of one row group are requested at once, from exactly the landed version. Every page
is decoded and its checksum verified, so damage shows before anything is registered.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.files.footer import MAGIC, file_end
from spark_jobs.files.source import Bytes


class MustRewrite(Exception):
    """A file cannot be registered as it is; the text says why, for the report."""


@dataclass(frozen=True)
class ArrowFile:
    """A landed Parquet file, read under a footer that describes the same pages.

    `footer` is the Thrift structure, without its length and the magic. Raises MustRewrite where
    Arrow cannot read it.
    """

    file: Bytes
    footer: bytes
    metadata: pq.FileMetaData = field(init=False)

    def __post_init__(self) -> None:
        without_pages = MAGIC + file_end(self.footer)
        try:
            object.__setattr__(self, "metadata", pq.read_metadata(io.BytesIO(without_pages)))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error

    def row_group(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Return all rows of a row group. Raises MustRewrite if Arrow finds it damaged."""
        group = self.metadata.row_group(number)
        if not group.num_rows:
            return self.metadata.schema.to_arrow_schema().empty_table().select(columns)
        start, end = _extent(group)
        pages = _Pages(self.file.range(start, end - start), start)
        try:
            reader = pq.ParquetFile(
                pa.PythonFile(pages, "r"),
                metadata=self.metadata,
                page_checksum_verification=True,
            )
            found = reader.read_row_group(number, columns=list(columns), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error
        if found.num_rows != group.num_rows or found.column_names != list(columns):
            raise MustRewrite("Arrow finds other rows or columns than the footer declares")
        return found


def _extent(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Return where the pages of a row group begin and end in the file."""
    chunks = [group.column(number) for number in range(group.num_columns)]
    starts = [_start(chunk) for chunk in chunks]
    sizes = [chunk.total_compressed_size for chunk in chunks]
    return min(starts), max(start + size for start, size in zip(starts, sizes, strict=True))


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    return int(min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset))))


def _unreadable(error: Exception) -> MustRewrite:
    return MustRewrite(f"Arrow cannot read it ({type(error).__name__})")


class _Pages(io.RawIOBase):
    """A part of a file, at the places that it has in the whole file."""

    def __init__(self, body: bytes, start: int) -> None:
        super().__init__()
        self._body = memoryview(body)
        self._start = start
        self._at = start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        ends = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}
        self._at = ends.get(whence, self._start + len(self._body)) + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        here = self._at - self._start
        if here < 0:
            raise OSError("a page lies outside of its row group")
        found = self._body[here:] if size < 0 else self._body[here : here + size]
        self._at += len(found)
        return bytes(found)
