"""Write a table's small data files again as few large ones on a branch; compare two states of it.

Two job runs do this. Code that took over the first could report whatever it liked, so the second
compares, and has no rights to write anything else than its report.
"""

import secrets
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.audit.audit_tables import PUBLISHED, TABLES
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.job.upkeep import FEWEST, Comparison, Fingerprint
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import iceberg
from spark_jobs.spark.errors import explain
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.jvm import JavaError, java, java_class, java_session, texts_of
from spark_jobs.spark.session import CATALOG, OpenSession, add_catalog, on_branch

_BEFORE, _AFTER = "before", "after"  # catalogs of the table's two states
_HISTORY = {table.name for table in TABLES}
# So that no two values of a row have the same text: times with all of their digits, and nulls.
_EXACT = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_DIGITS = 15  # hexadecimal, of a row's hash: as many as fit a long


def compact(spec: JobSpec, storage: Storage, token: str, open_session: OpenSession) -> None:
    """Rewrite the table on the spec's branch; or compare two states of it, and put the report.

    Raises Permanent where the table is gone, or cannot be rewritten or compared.
    """
    if spec.audited_hash:
        spark = on_branch(open_session, spec, token)
        report = compare(spec, spark, token)
        storage.put(spec.report_key, report.to_json().encode())
    elif Branch(spec.nessie_uri, spec.branch, token).head() == spec.base_hash:
        spark = on_branch(open_session, spec, token)
        _rewrite(spark, _table(spark, spec.table, CATALOG), spec.table)
    # Otherwise an earlier try of this run has committed: what it wrote is compared in any case.


def compare(spec: JobSpec, spark: SparkSession, token: str) -> Comparison:
    """Return the fingerprints of the data files by which two states of a table differ.

    Raises Permanent where the states differ in how their data files are read.
    """
    base, rewritten = spec.base_hash, spec.audited_hash
    add_catalog(spark, _BEFORE, spec, base, token)
    add_catalog(spark, _AFTER, spec, rewritten, token)
    old, new = (_table(spark, spec.table, catalog) for catalog in (_BEFORE, _AFTER))
    if reading(spark, old) != reading(spark, new):
        raise Permanent("TABLE_CHANGED", "the branch has another schema, layout or property")
    before, after = data_files(old), data_files(new)
    key = secrets.token_hex(16)  # of this run: rows with equal hashes cannot be made beforehand
    gone = _fingerprint(spark, old, [before[path] for path in before.keys() - after.keys()], key)
    came = _fingerprint(spark, new, [after[path] for path in after.keys() - before.keys()], key)
    return Comparison(spec.table, spec.branch, base, rewritten, gone, came)


def reading(spark: SparkSession, table: Any) -> tuple[Any, ...]:
    """Return what decides, besides the data files, how a table is read.

    Nessie adds properties of its own, which tell the commit.
    """
    schema = iceberg.written_schema(spark, table)
    layout = str(table.spec().toString()), str(table.sortOrder().toString())
    properties = texts_of(table.properties()).items()
    own = {name: value for name, value in properties if not name.startswith("nessie.")}
    return str(table.uuid().toString()), schema, layout, own


def data_files(table: Any) -> dict[str, Any]:
    """Return a scan of each data file by its address.

    Raises Permanent where delete files hide rows, or a data file is listed twice.
    """
    if iceberg.has_deletes(table):
        raise Permanent("ROWS_DELETED", "delete files hide rows of the table")
    scans = iceberg.planned_scans(table)
    by_address = {str(scan.file().location()): scan for scan in scans}
    if len(by_address) < len(scans):
        raise Permanent("FILE_TWICE", "the table lists a data file more than once")
    return by_address


def _table(spark: SparkSession, name: str, catalog: str) -> Any:
    table = iceberg.find_iceberg_table(spark, table_name(name, catalog))
    if table is None:
        raise Permanent("TABLE_GONE", f"there is no table {name} to compact")
    return table


def _rewrite(spark: SparkSession, table: Any, name: str) -> None:
    """Have Iceberg rewrite small data files, in the table's order if it has one, by one commit."""
    actions = java_class(spark, "org.apache.iceberg.spark.actions.SparkActions")
    action = actions.get(java_session(spark)).rewriteDataFiles(table)
    action = action.option("min-input-files", str(FEWEST))
    if name in _HISTORY:  # entries of what is not published may still move to another partition
        equal = java(spark).org.apache.iceberg.expressions.Expressions.equal
        action = action.filter(equal(PUBLISHED, True))
    try:
        (action.binPack() if table.sortOrder().isUnsorted() else action.sort()).execute()
    except JavaError as error:
        raise explain(error, "the data files cannot be rewritten") from error


def _fingerprint(spark: SparkSession, table: Any, scans: Sequence[Any], key: str) -> Fingerprint:
    """Return the fingerprint of the rows in data files. Raises Permanent if these count others."""
    if not scans:
        return Fingerprint(0, "0")
    counted = fingerprint(iceberg.rows_in(spark, table, scans), key)
    if counted.rows != sum(scan.file().recordCount() for scan in scans):
        raise Permanent("ROWS_MISCOUNTED", "the table counts other rows than its data files have")
    return counted


def fingerprint(rows: DataFrame, key: str) -> Fingerprint:
    """Return the number of rows and the sum of their hashes, which nobody without the key knows."""
    text = F.concat(F.lit(key), exact_text())
    digits = F.substring(F.sha2(text, 256), 1, _DIGITS)
    hashes = F.conv(digits, 16, 10).cast("decimal(38,0)")
    rows_, total = rows.agg(F.count("*"), F.sum(hashes)).collect()[0]
    return Fingerprint(rows_, str(total or 0))


def exact_text() -> Column:
    """Return each row as a text that no other row has."""
    return F.to_json(F.struct("*"), _EXACT)
