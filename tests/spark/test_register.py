"""A registered file is read by every engine as if Spark had written its rows."""

import io
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import IdentityTransform
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Transient
from spark_jobs.append import INGESTION, Opened, append, open_table
from spark_jobs.audit.arrow_values import ColumnStatistics
from spark_jobs.files.footer import file_end, with_field_ids
from spark_jobs.files.registrable import why_rewritten
from spark_jobs.nessie_branch import Branch
from spark_jobs.register import Layout, data_file, layout, new_location, register
from spark_jobs.spark import iceberg, jvm
from spark_jobs.spark.session import open_session
from spark_jobs.storage import Storage
from tests.fakes.parquet_files import (
    PATHS,
    PROPERTIES,
    ROWS,
    SCHEMA,
    SPARK_TYPES,
    by_arrow,
    by_duckdb,
    footer_of,
    ids_within,
)
from tests.services import fresh_session
from tests.spark.conftest import Job, new_table
from tests.spark.measuring import contract_of

pytestmark = pytest.mark.spark
_MB = 1 << 20
_DUCKDB_TYPES = {
    "pair": 'STRUCT(a VARCHAR, b DOUBLE, "inner" STRUCT(day DATE))',
    "items": "STRUCT(sku VARCHAR, count BIGINT)[]",
    "prices": "MAP(VARCHAR, DECIMAL(9,2))",
    "grid": "INTEGER[][]",
}


def contract_text(table: str) -> str:
    """Return the contract of a table with a column of each type."""
    return contract_of(PROPERTIES, [{"metric": "rowCount", "mustBeGreaterThan": 0}], table)


def statistics(rows: pa.Table) -> dict[str, ColumnStatistics]:
    """Return the statistics of each column but lists and maps, by Arrow's own functions."""
    found: dict[str, ColumnStatistics] = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_struct(column.type):
            inner = pa.table(column.combine_chunks().flatten(), [*column.type.names])
            found |= {f"{name}.{part}": each for part, each in statistics(inner).items()}
        elif not pa.types.is_nested(column.type):
            found[name] = _statistics(column)
    return found


def _statistics(column: pa.ChunkedArray) -> ColumnStatistics:
    count, nulls = len(column), column.null_count
    floating = pa.types.is_floating(column.type)
    nans = pc.sum(pc.is_nan(column)).as_py() or 0 if floating else None
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if floating:
        column = column.filter(pc.invert(pc.is_nan(column)))
    found = pc.min_max(column).as_py()
    return ColumnStatistics(count, nulls, nans, found["min"], found["max"])


@dataclass(frozen=True)
class Lake:
    """A table with a column of each type, on a branch of its own."""

    job: Job
    spark: SparkSession
    storage: Storage
    branch: Branch
    contract: Contract
    opened: Opened

    @property
    def layout(self) -> Layout:
        return layout(self.spark, self.opened.table, self.contract)

    @property
    def now(self) -> Opened:
        return replace(self.opened, at=self.branch.head())

    @property
    def rows(self) -> DataFrame:
        return self.spark.table(f"lake.{self.contract.table}")

    def land(self, body: bytes) -> Storage:
        """Return the storage of a run whose landed file has these bytes."""
        landed = self.job.services.land("tests/a landed file", body)
        return replace(self.storage, spec=replace(self.storage.spec, landed=landed))

    def prepared(self, body: bytes) -> Any:
        """Return a copied file, as it can be registered."""
        start, footer = footer_of(body)
        assert why_rewritten(footer, self.contract) == ""
        where, name = self.layout, f"{os.urandom(8).hex()}.parquet"
        storage, location = self.land(body), new_location(self.opened.table, name)
        size = storage.copy(location, start, file_end(with_field_ids(footer, where.ids)))
        metadata = pq.read_metadata(io.BytesIO(body))
        found = statistics(read(body))
        return data_file(self.spark, where, location, size, metadata.num_rows, found, metadata)

    def register(self, *bodies: bytes) -> list[Any]:
        """Register files in one commit; return them as the table has them."""
        files = [self.prepared(body) for body in bodies]
        made, _ = register(self.now, files, "an ingestion", self.branch)
        return list(made)

    def append(self, body: bytes, folder: Path) -> Any:
        """Append a file's rows as Spark does; return the data file."""
        (folder / "file.parquet").write_bytes(body)
        reader = self.spark.read.option("datetimeRebaseMode", "CORRECTED")
        rows = reader.parquet(str(folder / "file.parquet")).coalesce(1)
        made, _ = append(rows, self.now, self.contract, "another ingestion", self.branch)
        (file,) = made
        return file

    def described(self) -> dict[str, dict[str, Any]]:
        """Return the table's files by address, as pyiceberg finds them in the manifests."""
        table = self.job.services.at(self.branch.name).load_table(self.contract.table)
        return {file["file_path"]: file for file in table.inspect.files().to_pylist()}

    def stored(self, file: Any) -> bytes:
        """Return the bytes of a data file."""
        key = self.storage.key(str(file.location()))
        where = {"Bucket": self.storage.spec.lake_bucket, "Key": key}
        return bytes(self.storage.s3.get_object(**where)["Body"].read())


def made(job: Job, table: str) -> Lake:
    """Return an empty table of this name."""
    spec = job.spec(job.services.land("tests/first", b"x"), contract_text(table), table)
    fresh_session(job.warm_spark)
    storage = Storage.connect(spec)
    token, contract = storage.nessie_token(), storage.contract()
    spark = open_session(spec, token)
    branch = Branch(spec.nessie_uri, spec.branch, token)
    opened = open_table(spark, spec, branch, contract)
    return Lake(job, spark, storage, branch, contract, opened)


@pytest.fixture
def lake(job: Job, table: str) -> Lake:
    """Return an empty table."""
    return made(job, table)


def read(body: bytes) -> pa.Table:
    """Return a file's rows, as Arrow reads them."""
    return pq.read_table(io.BytesIO(body)).select(SCHEMA.names).cast(SCHEMA)


def values(rows: pa.Table) -> list[str]:
    """Return the rows as texts, in which NaN equals NaN, in any fixed order."""
    return sorted(map(str, rows.select(SCHEMA.names).cast(SCHEMA).to_pylist()))


def by_spark(spark: SparkSession, rows: pa.Table, folder: Path) -> Iterator[bytes]:
    """Yield files of Spark's writer: as it is by default, and with bloom filters."""
    plain = folder / "plain.parquet"
    pq.write_table(rows, plain)
    frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(plain)).coalesce(1)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    for name, options in (("a", {}), ("b", {"parquet.bloom.filter.enabled": "true"})):
        frame.write.options(**options).parquet(str(folder / name))
        (file,) = (folder / name).glob("*.parquet")
        yield file.read_bytes()


def by_ids(file: bytes, ids: Mapping[str, int], folder: Path) -> pa.Table:
    """Return a file's rows as DuckDB finds them by field ids, under the table's names."""
    (folder / "stored.parquet").write_bytes(file)
    types = {"string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMPTZ"}
    types |= {"timestamp_ntz": "TIMESTAMP"}
    types |= {SPARK_TYPES[name]: type_ for name, type_ in _DUCKDB_TYPES.items()}
    fields = ", ".join(
        f"{id_}: {{name: '{name}', type: '{types.get(SPARK_TYPES[name], SPARK_TYPES[name])}', "
        "default_value: NULL}"
        for name, id_ in ids.items()
        if name in SPARK_TYPES
    )
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        path = folder / "stored.parquet"
        return database.sql(
            f"SELECT * FROM read_parquet('{path}', schema = MAP {{{fields}}})"
        ).to_arrow_table()


def test_every_engine_reads_the_landed_rows(lake: Lake, tmp_path: Path) -> None:
    """Spark, pyiceberg and DuckDB read what landed, by field ids, whoever wrote the file."""
    bodies = {**by_arrow(), "DuckDB": by_duckdb(ROWS, tmp_path)}
    bodies |= zip(("Spark", "Spark, filters"), by_spark(lake.spark, ROWS, tmp_path), strict=True)
    files = dict(zip(bodies, lake.register(*bodies.values()), strict=True))
    snapshot = iceberg.summary(lake.opened.table)
    assert (snapshot[INGESTION], snapshot["added-data-files"]) == ("an ingestion", str(len(files)))
    ids = lake.layout.ids
    for name, body in bodies.items():
        location, stored = str(files[name].location()), lake.stored(files[name])
        landed, schema = values(read(body)), pq.ParquetFile(io.BytesIO(stored)).schema_arrow
        assert dict(pair for field in schema for pair in ids_within(field, field.name)) == ids
        assert values(lake.rows.where(f"_file = '{location}'").toArrow()) == landed, name
        assert values(by_ids(stored, ids, tmp_path)) == landed, name
    table = lake.job.services.at(lake.branch.name).load_table(lake.contract.table)
    assert "schema.name-mapping.default" not in table.properties
    every = pa.concat_tables(read(body) for body in bodies.values())
    without = [
        each or [] for each in every["items"].to_pylist()
    ]  # so pyiceberg reads lists of structs
    column = pa.array(without, SCHEMA.field("items").type)
    shown = every.set_column(SCHEMA.get_field_index("items"), "items", column)
    assert values(table.scan().to_arrow()) == values(shown)


def uncounted(lake: Lake, counts: Any) -> dict[int, Any]:
    """Return counts by field id, without those of floats in structs.

    Iceberg's writer leaves out rows without the struct there, so that its readers, asked for nulls,
    would leave such a file out.
    """
    return {id_: n for id_, n in counts or () if id_ != lake.layout.ids["pair.b"]}


def test_metrics_are_those_of_icebergs_own_writer(lake: Lake, tmp_path: Path) -> None:
    """Counts and bounds are what Iceberg finds for the same rows, but a zero bound has a sign."""
    lake.spark.sql(
        f"ALTER TABLE lake.{lake.contract.table} SET TBLPROPERTIES ("
        "'write.metadata.metrics.column.small'='none', "
        "'write.metadata.metrics.column.big'='counts', "
        "'write.metadata.metrics.column.raw'='full')"
    )
    lake.opened.table.refresh()
    body = by_arrow()["many row groups"]
    (registered,) = lake.register(body)
    written = lake.append(body, tmp_path)
    described = lake.described()
    ours, theirs = (described[str(file.location())] for file in (registered, written))
    assert ours["record_count"] == theirs["record_count"]
    for key in ("value_counts", "null_value_counts", "nan_value_counts"):
        assert uncounted(lake, ours[key]) == uncounted(lake, theirs[key]), key
    for key in ("spec_id", "sort_order_id", "content", "file_format", "partition"):
        assert ours.get(key) == theirs.get(key), key
    assert [id_ for id_, _ in ours["column_sizes"]] == [id_ for id_, _ in theirs["column_sizes"]]
    assert ours["split_offsets"][0] == theirs["split_offsets"][0] == 4
    assert len(ours["split_offsets"]) == pq.read_metadata(io.BytesIO(body)).num_row_groups
    for key in ("lower_bounds", "upper_bounds"):
        assert dict(ours[key]) == dict(theirs[key]), key


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_zero_bound_is_both_zeros(lake: Lake, zero: float) -> None:
    """A bound of zero has the sign that lets in the other zero, which Spark finds equal."""
    rows = ROWS.slice(0, 1).set_column(4, "real", pa.array([zero]))
    sink = io.BytesIO()
    pq.write_table(rows, sink, use_dictionary=False)
    (file,) = lake.register(sink.getvalue())
    described, id_ = lake.described()[str(file.location())], lake.layout.ids["real"]
    bounds = [dict(described[key])[id_] for key in ("lower_bounds", "upper_bounds")]
    assert bounds == [struct.pack("<d", -0.0), struct.pack("<d", 0.0)]
    assert lake.rows.where("real = 0D").count() == lake.rows.where("real = -0D").count() == 1


def test_columns_without_values_have_no_bounds(lake: Lake, tmp_path: Path) -> None:
    """Nulls alone, and NaN alone, have counts and no bounds, as from Iceberg's own writer."""
    nothing = {field.name: pa.nulls(2, field.type) for field in SCHEMA}
    nothing["real"] = pa.array([float("nan")] * 2)
    sink = io.BytesIO()
    pq.write_table(pa.table(nothing, schema=SCHEMA), sink)
    registered, written = lake.register(sink.getvalue())[0], lake.append(sink.getvalue(), tmp_path)
    described = lake.described()
    ours, theirs = (described[str(file.location())] for file in (registered, written))
    for key in ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        assert uncounted(lake, ours[key]) == uncounted(lake, theirs[key]), key
    assert not ours["lower_bounds"]


@pytest.fixture(scope="module")
def filtered(job: Job) -> Lake:
    """Return a table with a registered file, without dictionaries, which tell 0.0 from -0.0."""
    filtered = made(job, new_table())
    filtered.register(by_arrow()["no dictionary"])
    return filtered


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("single = 0.0", 1),
        ("single = -0.0", 1),
        ("isnan(real)", 1),
        ("real < 0", 1),
        ("big > 9000000000000000000", 1),
        ("price = -1234567.89", 1),
        ("huge >= 1e27", 1),
        ("day = DATE '9999-12-31'", 1),
        ("at < TIMESTAMP '0002-01-01 00:00:00Z'", 1),
        ("text > 'ÿ'", 1),
        ("raw >= X'FFFF'", 1),
        ("flag IS NULL", 1),
        ("text = 'none such'", 0),
        ("small = 1", 0),
        ("pair.a = 'x'", 1),
        ("pair.b = 0D", 1),
        ("pair.b IS NULL", 1),
        ("pair.inner.day = DATE '2013-01-01'", 1),
        ("pair.a > 'z'", 0),
        ("items IS NULL", 1),
        ("exists(items, each -> each.count = 2)", 1),
    ],
)
def test_bounds_hide_no_row(filtered: Lake, condition: str, count: int) -> None:
    """A condition finds its rows in a registered file; planning by bounds excludes none."""
    assert filtered.rows.where(condition).count() == count


def _forget_values(metadata: Any) -> None:
    """Remove what a footer says about values, and where pages' indexes and filters are."""
    for chunk in (chunk for group in metadata.getRow_groups() for chunk in group.getColumns()):
        for place in ("Offset_index", "Column_index"):
            getattr(chunk, f"unset{place}_offset")()
            getattr(chunk, f"unset{place}_length")()
        meta = chunk.getMeta_data()
        for said in ("Statistics", "Bloom_filter_offset", "Bloom_filter_length", "Size_statistics"):
            getattr(meta, f"unset{said}")()


def test_the_jvms_writer_makes_the_same_footer(lake: Lake, tmp_path: Path) -> None:
    """Parquet's own Java library reads the ids, and finds only what is said of values missing."""
    util = jvm.java_class(lake.spark, "org.apache.parquet.format.Util")
    source = jvm.java_class(lake.spark, "java.io.ByteArrayInputStream")
    ids = lake.layout.ids
    bodies = [
        *by_arrow().values(),
        by_duckdb(ROWS, tmp_path),
        *by_spark(lake.spark, ROWS, tmp_path),
    ]
    for body in bodies:
        footer = footer_of(body)[1]
        plain, changed = (
            util.readFileMetaData(source(each)) for each in (footer, with_field_ids(footer, ids))
        )
        named = [
            e for e in list(plain.getSchema())[1:] if str(e.getRepetition_type()) != "REPEATED"
        ]
        for element, path in zip(named, PATHS, strict=True):
            element.setField_id(ids[path])
        _forget_values(plain)
        for metadata in (plain, changed):
            notes = metadata.getKey_value_metadata() or []
            for note in [n for n in notes if str(n.getKey()) == "ARROW:schema"]:
                notes.remove(note)
        assert plain.equals(changed)


def test_pages_are_copied_within_s3(lake: Lake) -> None:
    """The landed version is copied in parts, also after a newer one, and nothing is left behind."""
    for size in (5 * _MB + 1, 12 * _MB):
        pages = os.urandom(size)
        storage = lake.land(pages + file_end(b"a footer"))
        lake.land(b"a newer version")
        copied = storage.copy(storage.address("tests/copied"), size, file_end(b"another"), 5 * _MB)
        where = {"Bucket": storage.spec.lake_bucket, "Key": "tests/copied"}
        assert storage.s3.get_object(**where)["Body"].read() == pages + file_end(b"another")
        assert copied == size + len(file_end(b"another"))
    requests = []

    def refuse_second(**_: Any) -> None:
        requests.append(1)
        if len(requests) == 2:
            raise ClientError({"Error": {"Code": "InternalError"}}, "UploadPartCopy")

    storage.s3.meta.events.register_first("before-call.s3.UploadPartCopy", refuse_second)
    with pytest.raises(Transient, match="STORAGE_UNAVAILABLE"):
        storage.copy(storage.address("tests/failed"), size, file_end(b"another"), 5 * _MB)
    bucket = {"Bucket": storage.spec.lake_bucket}
    assert not storage.s3.list_multipart_uploads(**bucket).get("Uploads")
    assert not storage.s3.list_objects_v2(**bucket, Prefix="tests/failed").get("Contents")


def test_another_writer_is_noticed(lake: Lake) -> None:
    """A commit of another writer meanwhile is an error of the run, not of the file."""
    file = lake.prepared(by_arrow()["format 2.6"])
    before = lake.now
    lake.register(by_arrow()["format 2.6"])
    with pytest.raises(Transient, match="BRANCH_SHARED"):
        register(before, [file], "an ingestion", lake.branch)


_OBSTACLES: Mapping[str, Callable[[Table], Any]] = {
    "": lambda table: table.transaction().set_properties(comment="plain"),
    "partitioned": lambda table: table.update_spec().add_identity("day"),
    "sort order": lambda table: table.update_sort_order().asc("day", IdentityTransform()),
    "as Parquet": lambda table: table.transaction().set_properties({"write.format.default": "orc"}),
    "encrypted": lambda table: table.transaction().set_properties({"encryption.key-id": "k"}),
}


@pytest.mark.parametrize("obstacle", _OBSTACLES)
def test_a_table_may_be_an_obstacle(lake: Lake, obstacle: str) -> None:
    """A table whose files are not plain Parquet says why no file is registered in it."""
    table = lake.job.services.at(lake.branch.name).load_table(lake.contract.table)
    change = _OBSTACLES[obstacle](table)
    (change.commit_transaction if isinstance(change, Transaction) else change.commit)()
    lake.opened.table.refresh()
    found = lake.layout.obstacle
    assert obstacle in found
    assert bool(found) == bool(obstacle)


def test_another_type_is_an_obstacle(lake: Lake) -> None:
    """A column that Spark would convert on writing, as text to a UUID, registers no file."""
    columns = lake.contract.columns
    others = [replace(each, type="binary") if each.name == "text" else each for each in columns]
    other = replace(lake.contract, columns=tuple(others))
    found = layout(lake.spark, lake.opened.table, other).obstacle
    assert found == "the table has another type for text"
