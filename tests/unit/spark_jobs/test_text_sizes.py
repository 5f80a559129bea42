"""The texts of a Parquet column are known to fit into memory before they are decoded."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.files.arrow.parquet import MOST_TEXT, ArrowFile, MustRewrite
from spark_jobs.files.arrow.text_sizes import most_bytes
from spark_jobs.files.source import LocalFile
from tests.fakes.parquet_files import footer_of

LONG = "x" * 100_000
CODECS = ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]


def column(texts: list[str | None], **options: Any) -> tuple[memoryview, str]:
    """Return the pages of a column with these texts, and the name of their compression."""
    file = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array(texts, pa.string())}), file, **options)
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    pages = memoryview(file.getvalue())[start : start + chunk.total_compressed_size]
    return pages, chunk.compression.lower()


@given(
    st.lists(st.none() | st.text(max_size=30), min_size=1, max_size=200),
    st.sampled_from(CODECS),
    st.sampled_from(["1.0", "2.0"]),
    st.sampled_from(["dictionary", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"]),
)
def test_no_texts_exceed_their_bound(
    texts: list[str | None], codec: str, version: str, encoding: str
) -> None:
    """The bound is never below the bytes that the texts have, however they are written."""
    how = {} if encoding == "dictionary" else {"column_encoding": {"a": encoding}}
    by_entries = encoding == "dictionary"
    pages = column(
        texts, compression=codec, data_page_version=version, use_dictionary=by_entries, **how
    )
    needed = sum(len(each.encode()) for each in texts if each)
    assert most_bytes(*pages, enough=0) >= needed
    assert most_bytes(*pages, enough=1 << 60) >= needed


@pytest.mark.parametrize("codec", CODECS)
def test_many_short_entries_need_little(codec: str) -> None:
    """The bound of a dictionary is by its longest entry, not by all of them."""
    texts: list[str | None] = [f"{number:06}" for number in range(10_000)]
    pages = column(texts, compression=codec)
    assert most_bytes(*pages, enough=0) < 1_000_000
    assert most_bytes(*pages, enough=1 << 60) > 100_000_000


def repeated() -> tuple[pa.Array, dict[str, Any]]:
    """Return one long text many times, in a dictionary of one entry."""
    places = pa.array([0] * (MOST_TEXT // len(LONG) + 1), pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array([LONG])), {}


def alike() -> tuple[pa.Array, dict[str, Any]]:
    """Return texts that could all begin with the first one."""
    texts = [LONG, *["y"] * (MOST_TEXT // len(LONG))]
    return pa.array(texts), {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}


@pytest.mark.parametrize("bomb", [repeated, alike])
def test_few_bytes_of_much_text_are_for_spark(
    tmp_path: Path, bomb: Callable[[], tuple[pa.Array, dict[str, Any]]]
) -> None:
    """A small file whose texts would fill the memory is not decoded."""
    values, how = bomb()
    file = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": values}), file, **how)
    assert file.stat().st_size < 1_000_000
    _, footer = footer_of(file.read_bytes())
    with pytest.raises(MustRewrite, match="too much text"):
        ArrowFile(LocalFile(file), footer).row_group(0, ["a"])


@pytest.mark.parametrize("cut", [1, 5])
def test_pages_that_nobody_can_read_are_not_bounded(cut: int) -> None:
    """A header that ends too early is an error."""
    pages, codec = column(["a", "b"])
    with pytest.raises(ValueError, match="ends too early"):
        most_bytes(pages[:cut], codec, 0)
