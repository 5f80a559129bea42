"""Make a landed Parquet file a data file of the branch's table, without writing its pages again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from spark_jobs.append import INGESTION, Opened, Target, committed
from spark_jobs.data_file import ColumnStatistics, Field, scan_task
from spark_jobs.errors import explain
from spark_jobs.files.footer import file_end
from spark_jobs.spark.jvm import JavaError, java_class
from spark_jobs.storage import Storage, translated

# The copy of the landed file, with another footer

_SMALLEST_PART, _MOST_PARTS = 5 << 20, 10_000  # S3's limits of an upload in parts
_PART = 256 << 20
_AT_ONCE = 4


def copy(
    storage: Storage,
    key: str,
    footer_start: int,
    footer: bytes,
    body: bytes | None = None,
    part: int = _PART,
) -> int:
    """Put the landed file with another footer at a key of the lake bucket; return its size.

    A file whose bytes are at hand as `body` is put at once. Otherwise S3 itself copies the pages of
    the landed version, in parts of about `part` bytes. Raises Permanent OBJECT_GONE, Transient.
    """
    end = file_end(footer)
    if body is None and footer_start < _SMALLEST_PART:
        body = storage.head(footer_start)
    if body is not None:
        storage.put(key, body[:footer_start] + end)
    else:
        _copy_parts(storage, key, _ranges(footer_start, part), end)
    return footer_start + len(end)


def _ranges(length: int, part: int) -> list[str]:
    """Return the ranges of bytes to copy, each of S3's smallest size at least."""
    count = min(-(-length // part), length // _SMALLEST_PART, _MOST_PARTS - 1)
    starts = [length * n // count for n in range(count + 1)]
    return [f"bytes={a}-{b - 1}" for a, b in pairwise(starts)]


def _copy_parts(storage: Storage, key: str, ranges: Sequence[str], end: bytes) -> None:
    source, etag = storage.source(), storage.spec.landed.etag

    def copied(number: int) -> Mapping[str, Any]:
        # The tag as well, as a bucket may keep no versions.
        pinned = {"CopySource": source, "CopySourceIfMatch": etag}
        part = storage.s3.upload_part_copy(
            **upload, **pinned, PartNumber=number, CopySourceRange=ranges[number - 1]
        )
        return _part(number, part["CopyPartResult"])

    with translated(storage.spec.landed.uri), _upload(storage, key) as upload:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            parts = list(pool.map(copied, range(1, len(ranges) + 1)))
        last = len(ranges) + 1
        parts.append(_part(last, storage.s3.upload_part(**upload, PartNumber=last, Body=end)))
        storage.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})


@contextmanager
def _upload(storage: Storage, key: str) -> Iterator[dict[str, str]]:
    """Provide the parameters of an upload in parts; a failure leaves nothing of it behind."""
    where = {"Bucket": storage.spec.lake_bucket, "Key": key}
    upload = where | {"UploadId": storage.s3.create_multipart_upload(**where)["UploadId"]}
    try:
        yield upload
    except BaseException:
        with suppress(ClientError, BotoCoreError):  # S3's own rule clears it away later
            storage.s3.abort_multipart_upload(**upload)
        raise


def _part(number: int, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as the upload's end names it: with the tag and the checksum that S3 gave it."""
    given = {name: value for name, value in result.items() if name.startswith("Checksum")}
    return {"PartNumber": number, "ETag": result["ETag"], **given}


# The table

_ICEBERG_TYPES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_METRICS = "org.apache.iceberg.MetricsConfig"
_SCHEMAS = "org.apache.iceberg.SchemaParser"
_SCAN_TASKS = "org.apache.iceberg.ScanTaskParser"


@dataclass(frozen=True)
class Layout:
    """How the files of a table are written.

    `fields` are the contract's columns in it, by the contract's names. `obstacle` is the reason why
    no file can be registered, "" without one.
    """

    fields: Mapping[str, Field]
    spec_id: int
    obstacle: str = ""

    @property
    def ids(self) -> dict[str, int]:
        """Return the columns' field ids."""
        return {name: field.id for name, field in self.fields.items()}


def layout(spark: SparkSession, table: Any, contract: Contract) -> Layout:
    """Return the layout of the branch's table, which has the contract's columns."""
    metrics = java_class(spark, _METRICS).forTable(table)
    schema = json.loads(java_class(spark, _SCHEMAS).toJson(table.schema()))
    there = {field["name"].lower(): field for field in schema["fields"]}
    fields = {}
    for column in contract.columns:
        found = there[column.name.lower()]
        mode = str(metrics.columnMode(found["name"]).toString())
        fields[column.name] = Field(found["id"], _written(found["type"]), mode)
    spec = table.spec()
    return Layout(fields, spec.specId(), _obstacle(table, spec, fields, contract))


def _written(type_: Any) -> str:
    """Return a type as Iceberg writes it in JSON, without spaces; "" for a nested one."""
    return type_.replace(" ", "") if isinstance(type_, str) else ""


def _obstacle(table: Any, spec: Any, fields: Mapping[str, Field], contract: Contract) -> str:
    properties = {str(key): str(value) for key, value in dict(table.properties()).items()}
    others = [
        column.name
        for column in contract.columns
        if fields[column.name].type != _ICEBERG_TYPES.get(column.type, column.type)
    ]
    reasons = {
        "the table is partitioned": not spec.fields().isEmpty(),
        "the table has a sort order": not table.sortOrder().isUnsorted(),
        "the table is not written as Parquet": (
            properties.get("write.format.default", "parquet").lower() != "parquet"
        ),
        "the table is encrypted": "encryption.key-id" in properties,
        f"the table has another type for {', '.join(others)}": bool(others),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def new_location(table: Any, name: str) -> str:
    """Return the address of a new data file, where the table keeps its files."""
    return str(table.locationProvider().newDataLocation(name))


def data_file(
    spark: SparkSession,
    where: Layout,
    location: str,
    size: int,
    rows: int,
    columns: Mapping[str, ColumnStatistics],
    metadata: Any,
) -> Any:
    """Return a file as a table's `org.apache.iceberg.DataFile`.

    `metadata` is the file's (`pyarrow.parquet.FileMetaData`).
    """
    task = scan_task(location, size, rows, where.fields, columns, metadata, where.spec_id)
    return java_class(spark, _SCAN_TASKS).fromJson(task, True).file()


def register(
    opened: Opened, files: Sequence[Any], ingestion: str, branch: Target
) -> tuple[tuple[Any, ...], str]:
    """Append data files in one commit that names the ingestion.

    Returns them as the commit has them, and the commit's hash. Raises as `append.committed`, and
    Transient when the catalog refuses the commit.
    """
    append = opened.table.newAppend()
    for file in files:
        append = append.appendFile(file)
    try:
        append.set(INGESTION, ingestion).commit()
    except JavaError as error:
        raise explain(error, "the file cannot be registered") from error
    return committed(opened, branch)
