"""A data file is read by every engine as if Spark had written its rows."""

import io
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyspark.sql import DataFrame, SparkSession

import access.tables.projection  # noqa: F401  for every scan of pyiceberg
from lakegate.contract.model import Contract
from lakegate.errors import Transient
from lakegate.limits import DEFAULTS
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import PART, Storage
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.spark import iceberg
from spark_jobs.spark.session import open_session
from spark_jobs.write.append import INGESTION, Opened, append, open_table
from spark_jobs.write.commit import commit, data_files
from spark_jobs.write.description import Written
from spark_jobs.write.files import DataFiles
from spark_jobs.write.layout import Layout, layout_of
from tests.fakes.parquet_files import (
    PROPERTIES,
    ROWS,
    SCHEMA,
    SPARK_TYPES,
    by_arrow,
    by_duckdb,
    ids_within,
)
from tests.services import fresh_session
from tests.spark.conftest import Job, new_table
from tests.spark.measuring import contract_of

pytestmark = pytest.mark.spark
_DUCKDB_TYPES = {
    "pair": 'STRUCT(a VARCHAR, b DOUBLE, "inner" STRUCT(day DATE))',
    "items": "STRUCT(sku VARCHAR, count BIGINT)[]",
    "prices": "MAP(VARCHAR, DECIMAL(9,2))",
    "grid": "INTEGER[][]",
}


def contract_text(table: str) -> str:
    """Return the contract of a table with a column of each type."""
    return contract_of(PROPERTIES, [{"metric": "rowCount", "mustBeGreaterThan": 0}], table)


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
        return layout_of(self.spark, self.opened.table, self.contract)

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

    def written(self, body: bytes) -> tuple[Written, ...]:
        """Return the data files with a file's rows, which no commit names yet."""
        storage = self.land(body)
        files = DataFiles(storage, self.layout, self.contract, storage.spec)
        return prepared(storage, self.contract, DEFAULTS).examined(files).files

    def commit(self, *bodies: bytes) -> list[Any]:
        """Append the rows of files in one commit; return the data files as the table has them."""
        files = [file for body in bodies for file in self.written(body)]
        made = data_files(self.spark, self.layout, files)
        commit(self.now, made, sum(file.rows for file in files), "an ingestion", self.branch)
        return made

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
    files = dict(zip(bodies, lake.commit(*bodies.values()), strict=True))
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
    assert values(table.scan().to_arrow()) == values(every)


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
    (by_us,) = lake.commit(body)
    written = lake.append(body, tmp_path)
    described = lake.described()
    ours, theirs = (described[str(file.location())] for file in (by_us, written))
    assert ours["record_count"] == theirs["record_count"]
    for key in ("value_counts", "null_value_counts", "nan_value_counts"):
        assert uncounted(lake, ours[key]) == uncounted(lake, theirs[key]), key
    for key in ("spec_id", "sort_order_id", "content", "file_format", "partition"):
        assert ours.get(key) == theirs.get(key), key
    assert [id_ for id_, _ in ours["column_sizes"]] == [id_ for id_, _ in theirs["column_sizes"]]
    assert ours["split_offsets"][0] == theirs["split_offsets"][0] == 4
    stored = pq.read_metadata(io.BytesIO(lake.stored(by_us)))
    assert len(ours["split_offsets"]) == stored.num_row_groups == 1
    for key in ("lower_bounds", "upper_bounds"):
        assert dict(ours[key]) == dict(theirs[key]), key


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_zero_bound_is_both_zeros(lake: Lake, zero: float) -> None:
    """A bound of zero has the sign that lets in the other zero, which Spark finds equal."""
    rows = ROWS.slice(0, 1).set_column(4, "real", pa.array([zero]))
    sink = io.BytesIO()
    pq.write_table(rows, sink, use_dictionary=False)
    (file,) = lake.commit(sink.getvalue())
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
    by_us, written = lake.commit(sink.getvalue())[0], lake.append(sink.getvalue(), tmp_path)
    described = lake.described()
    ours, theirs = (described[str(file.location())] for file in (by_us, written))
    for key in ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        assert uncounted(lake, ours[key]) == uncounted(lake, theirs[key]), key
    assert not ours["lower_bounds"]


@pytest.fixture(scope="module")
def filtered(job: Job) -> Lake:
    """Return a table with a data file."""
    filtered = made(job, new_table())
    filtered.commit(by_arrow()["no dictionary"])
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
    """A condition finds its rows in a data file; planning by bounds excludes none."""
    assert filtered.rows.where(condition).count() == count


def test_a_large_file_is_put_in_parts(lake: Lake) -> None:
    """An object that is larger than a part is whole in S3, and a failure leaves nothing of it."""
    body = os.urandom(2 * PART + 7)
    with lake.storage.new_object(lake.storage.address("tests/large")) as stream:
        stream.write(body)
    assert lake.storage.object(lake.storage.address("tests/large")) == body

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "InternalError"}}, "CompleteMultipartUpload")

    lake.storage.s3.meta.events.register_first("before-call.s3.CompleteMultipartUpload", refuse)
    failing = lake.storage.new_object(lake.storage.address("tests/failed"))
    with pytest.raises(Transient, match="STORAGE_UNAVAILABLE"), failing as stream:
        stream.write(body)
    bucket = {"Bucket": lake.storage.spec.lake_bucket}
    assert not lake.storage.s3.list_multipart_uploads(**bucket).get("Uploads")
    assert not lake.storage.s3.list_objects_v2(**bucket, Prefix="tests/failed").get("Contents")


def test_a_commit_that_the_branch_loses_is_no_commit(lake: Lake) -> None:
    """A branch whose catalog is set back right after the commit passes no file without its rows."""
    files, before = lake.written(by_arrow()["format 2.6"]), lake.now
    made, rows = data_files(lake.spark, lake.layout, files), sum(file.rows for file in files)

    class SetBack(Branch):
        def own_commit(self, before: str) -> str:
            """Let the catalog be set back, and see the branch then."""
            self.reset(before)
            return super().own_commit(before)

    branch = SetBack(**vars(lake.branch))
    with pytest.raises(Transient, match="BRANCH_SET_BACK"):
        commit(before, made, rows, "an ingestion", branch)


_OBSTACLES: Mapping[str, Callable[[Table], Any]] = {
    "": lambda table: table.transaction().set_properties(comment="plain"),
    "sorted by day(at)": lambda table: table.update_sort_order().asc("at", DayTransform()),
    "sorted by single": lambda table: table.update_sort_order().asc("single", IdentityTransform()),
    "as Parquet": lambda table: table.transaction().set_properties({"write.format.default": "orc"}),
    "encrypted": lambda table: table.transaction().set_properties({"encryption.key-id": "k"}),
}


@pytest.mark.parametrize("obstacle", _OBSTACLES)
def test_a_table_may_be_an_obstacle(lake: Lake, obstacle: str) -> None:
    """A table whose files are not plain Parquet says why Spark must write them."""
    table = lake.job.services.at(lake.branch.name).load_table(lake.contract.table)
    change = _OBSTACLES[obstacle](table)
    (change.commit_transaction if isinstance(change, Transaction) else change.commit)()
    lake.opened.table.refresh()
    found = lake.layout.obstacle
    assert obstacle in found
    assert bool(found) == bool(obstacle)


def test_another_type_is_an_obstacle(lake: Lake) -> None:
    """A column that Spark would convert on writing, as text to a UUID, is for Spark."""
    columns = lake.contract.columns
    others = [replace(each, type="binary") if each.name == "text" else each for each in columns]
    other = replace(lake.contract, columns=tuple(others))
    found = layout_of(lake.spark, lake.opened.table, other).obstacle
    assert found == "the table has another type for text"
