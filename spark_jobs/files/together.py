"""Open many small files of one format together, as rows that name their file.

Files that are described alike are read as one: what differs between them is only in their rows.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.files import csv, json, parquet, sniff
from spark_jobs.files.limits import check_columns, check_line, check_parquet, parquet_footer
from spark_jobs.files.source import FILE, Bytes
from spark_jobs.files.text_lines import check_gzip, read_lines
from spark_jobs.files.thrift import Compact
from spark_jobs.schema.compare import compare

# A task reads one file: only then do its rows go to one data file of their own.
_LARGE = "1g"
ONE_FILE_A_TASK = {
    "spark.sql.files.openCostInBytes": _LARGE,
    "spark.sql.files.maxPartitionBytes": _LARGE,
}
# Field ids of parquet.thrift: FileMetaData, RowGroup, SchemaElement and KeyValue.
_SCHEMA, _ROW_GROUPS, _PROPERTIES, _WRITER = 2, 4, 5, 6
_ROWS, _TYPE, _REPETITION, _KEY = 3, 1, 3, 1
_REPEATED, _INT96 = 2, 3
Files = Mapping[str, Bytes]  # by address


@dataclass(frozen=True)
class Together:
    """The rows of many files, with the contract's columns, `BAD_ROW` and `FILE`.

    `declared` has an independent count of each file's rows, by its address. A file that is not in
    it must be opened alone. The rows, or the lines that they are made of, stay in Spark's cache, so
    that all passes see the same ones, and request no file twice: clear it afterwards.
    """

    rows: DataFrame
    declared: Mapping[str, int]


def open_together(
    spark: SparkSession, files: Files, contract: Contract, limits: Limits
) -> Together:
    """Open the files of the contract's format.

    Raises Permanent if each must be opened alone, Transient when storage does not respond, and one
    of `JavaError` if a file's text cannot be read.
    """
    opening = {"parquet": _parquet, "json": _json}.get(contract.format, _csv)
    opened = opening(spark, files, contract, limits)
    if not opened:
        raise Permanent("ALL_ALONE", "none of the files can be read together with others")
    rows = reduce(DataFrame.unionByName, [each.rows for each in opened])
    declared = {path: count for each in opened for path, count in each.declared.items()}
    return Together(rows.persist() if contract.format == "parquet" else rows, declared)


def packed(rows: DataFrame) -> DataFrame:
    """Return the rows of many files in few tasks, for a pass that only measures them."""
    return rows.coalesce(rows.sparkSession.sparkContext.defaultParallelism)


def _named(rows: DataFrame) -> DataFrame:
    return rows.withColumn(FILE, F.input_file_name())


# Parquet: alike are files with the same schema from the same writer.


@dataclass(frozen=True)
class _Footer:
    """A footer: the declared rows, and all that decides how they are read."""

    rows: int
    shape: Hashable


def _parquet(
    spark: SparkSession, files: Files, contract: Contract, limits: Limits
) -> list[Together]:
    parquet.read_by_rows(spark)
    shapes: dict[Hashable, dict[str, int]] = defaultdict(dict)
    for path, file in files.items():
        for found in _footer(file, limits):
            shapes[found.shape][path] = found.rows
    opened = (_alike(spark, counts, contract, limits) for counts in shapes.values())
    return [each for found in opened for each in found]


def _footer(file: Bytes, limits: Limits) -> list[_Footer]:
    """Return the file's footer; nothing for a file to be opened alone."""
    try:
        whole = parquet_footer(file)
        if check_parquet(whole, file.size, limits) > limits.largest_by_rows:
            return []
        return _described(Compact(whole).struct())
    except (Permanent, ValueError, LookupError, TypeError, AttributeError):
        return []  # which is refused with the reason then


def _described(footer: Mapping[int, Any]) -> list[_Footer]:
    """Return what matters of a footer. Raises as a look-up in other values than expected."""
    if any(element.get(_REPETITION) == _REPEATED for element in footer[_SCHEMA]):
        return []  # its levels are checked one file at a time
    if any(element.get(_TYPE) == _INT96 for element in footer[_SCHEMA]):
        return []  # and so are these times
    names = frozenset(each[_KEY] for each in footer.get(_PROPERTIES, ()))
    shape = (repr(footer[_SCHEMA]), names, repr(footer.get(_WRITER)))
    return [_Footer(sum(group[_ROWS] for group in footer[_ROW_GROUPS]), shape)]


def _alike(
    spark: SparkSession, counts: Mapping[str, int], contract: Contract, limits: Limits
) -> list[Together]:
    """Return the rows; nothing if the columns differ from the contract's in any way."""
    paths = list(counts)
    try:
        described = parquet.describe(spark, paths[0], limits)
        source = parquet.source_of(spark, paths, described, contract)
    except Permanent:
        return []
    odd = source.findings or source.changes
    return [] if odd else [Together(_named(source.rows), counts)]


# Text: alike are CSV files with the same header, and JSON files with the same spelling of keys.


def _text_head(path: str, file: Bytes, contract: Contract, limits: Limits) -> bytes:
    """Return the beginning of a file's text. Raises Permanent for a file to be opened alone."""
    gzipped, size = path.endswith(".gz"), file.size
    if gzipped:
        text = check_gzip(file, int(contract.options["maxCompressionRatio"]), limits)
        size = text.longest_line
    check_line(size, limits)  # of plain text not even the whole file is longer than a line may be
    head = sniff.text_head(file.head(sniff.HEAD), gzipped=gzipped)
    sniff.check_text(contract.format, head, contract.options.get("encoding", "UTF-8"))
    return head


def _csv(spark: SparkSession, files: Files, contract: Contract, limits: Limits) -> list[Together]:
    shapes: dict[csv.Header, list[str]] = defaultdict(list)
    for path, file in files.items():
        for header in _header(path, file, contract, limits):
            shapes[header].append(path)
    return [_csv_alike(spark, shape, paths, contract) for shape, paths in shapes.items()]


def _header(path: str, file: Bytes, contract: Contract, limits: Limits) -> list[csv.Header]:
    """Return the names of a CSV file's columns, and its header; nothing if anything is odd."""
    try:
        head = _text_head(path, file, contract, limits)
        header = csv.header_of(head, contract)
        check_columns(len(header.names), limits)
    except Permanent:
        return []
    comparison = compare([(name, "") for name in header.names], contract)
    odd = comparison.findings or comparison.changes or not header.names
    return [] if odd else [header]


def _csv_alike(
    spark: SparkSession, header: csv.Header, paths: list[str], contract: Contract
) -> Together:
    options, width = contract.options, len(header.names)
    lines = _named(read_lines(spark, paths, options["encoding"])).persist()
    measures = csv.line_measures(options, header.first)
    asked = [F.expr(sql).alias(name) for name, sql in measures.items()]
    found = {row[FILE]: row.asDict() for row in packed(lines).groupBy(FILE).agg(*asked).collect()}
    counts = {path: csv.count_of_lines(each, header.first) for path, each in found.items()}
    cells = csv.cells_of_lines(lines, options, width, header.first, FILE)
    rows, _ = csv.typed_rows(cells, header.names, contract.columns, options, FILE)
    return Together(rows, {p: n for p, n in counts.items() if n is not None})


def _json(spark: SparkSession, files: Files, contract: Contract, limits: Limits) -> list[Together]:
    paths = [path for path, file in files.items() if _is_lines(path, file, contract, limits)]
    if not paths:
        return []
    lines = _named(json.object_lines(spark, paths)).persist()
    own = {column.name for column in contract.columns}
    shapes: dict[tuple[tuple[str, ...], bool], dict[str, int]] = defaultdict(dict)
    for row in json.keys_by_file(packed(lines), len(contract.columns)):
        if _fits(row["keys"], contract):
            renamed = tuple(key for key in row["keys"] if key not in own)
            shapes[renamed, not row["repeated"]][row[FILE]] = row["rows"]
    return [_json_alike(lines, *shape, counts, contract) for shape, counts in shapes.items()]


def _is_lines(path: str, file: Bytes, contract: Contract, limits: Limits) -> bool:
    try:
        return json.start_of(_text_head(path, file, contract, limits))[:1] == b"{"
    except Permanent:
        return False


def _fits(keys: Sequence[str], contract: Contract) -> bool:
    there = {key.lower() for key in keys}
    absent = [c.name for c in contract.columns if not c.required and c.name.lower() not in there]
    comparison = compare([(name, "") for name in (*keys, *absent)], contract)
    return bool(keys) and not (comparison.findings or comparison.changes)


def _json_alike(
    lines: DataFrame,
    renamed: Sequence[str],
    flat: bool,
    counts: Mapping[str, int],
    contract: Contract,
) -> Together:
    own = lines.where(F.col(FILE).isin(*counts))
    names = {key.lower(): key for key in renamed}
    rows, _ = json.typed_rows(own, names, contract.columns, FILE, flat=flat)
    return Together(rows, counts)
