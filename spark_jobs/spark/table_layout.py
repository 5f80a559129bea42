"""Read and change how an Iceberg table is stored, through its Java classes.

Changes are metadata only: files that are in the table stay as they were written.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from lakegate.contract.reading.layout import SortKey, TableLayout
from lakegate.contract.reading.partitions import Partition
from spark_jobs.spark.jvm import items_of, java_class, texts_of

_EXPRESSIONS = "org.apache.iceberg.expressions.Expressions"
_NULL_ORDER = "org.apache.iceberg.NullOrder"
_VOID = "void"  # a partition that was removed from a table of version 1


def layout_of(table: Any, columns: Iterable[str]) -> TableLayout:
    """Return how a table (`org.apache.iceberg.Table`) is stored, with these columns' comments."""
    schema = table.schema()
    comments = {name: schema.caseInsensitiveFindField(name).doc() for name in columns}
    return TableLayout(
        tuple(_partitions(table)),
        tuple(order_of(table)),
        texts_of(table.properties()),
        {name: str(doc) for name, doc in comments.items() if doc is not None},
    )


def _partitions(table: Any) -> Iterable[Partition]:
    for field in items_of(table.spec().fields()):
        transform = str(field.transform().toString())
        if transform != _VOID:
            yield Partition(str(table.schema().findColumnName(field.sourceId())), transform)


def sources(table: Any) -> set[str]:
    """Return the columns by which a table is, or was once, partitioned or sorted."""
    specs, orders = table.specs().values(), table.sortOrders().values()
    fields = [field for each in (*specs, *orders) for field in each.fields()]
    return {str(table.schema().findColumnName(field.sourceId())) for field in fields}


def order_of(table: Any) -> Iterable[SortKey]:
    """Yield the keys by which a table's files are sorted, a transformed one as `day(at)`."""
    for field in items_of(table.sortOrder().fields()):
        column = str(table.schema().findColumnName(field.sourceId()))
        transform = str(field.transform().toString())
        name = column if transform == "identity" else f"{transform}({column})"
        descending = str(field.direction().name()) == "DESC"
        yield SortKey(name, descending, str(field.nullOrder().name()) == "NULLS_FIRST")


def change_layout(spark: SparkSession, table: Any, change: TableLayout) -> None:
    """Change what a layout says of a table, in one commit. Raises one of `JavaError`."""
    transaction = table.newTransaction()
    if change.partitions is not None:
        _partition(spark, table, transaction.updateSpec(), change.partitions)
    if change.order is not None:
        _sort(spark, table, transaction.replaceSortOrder(), change.order)
    if change.properties:
        update = transaction.updateProperties()
        for name, value in change.properties.items():
            update.set(name, value)
        update.commit()
    if change.comments:
        update = transaction.updateSchema()
        for path, text in change.comments.items():
            update.updateColumnDoc(_spelt(table, path), text)
        update.commit()
    transaction.commitTransaction()


def _partition(
    spark: SparkSession, table: Any, update: Any, partitions: Iterable[Partition]
) -> None:
    """Remove all partitions and add these; Iceberg keeps those that are removed and added."""
    for field in items_of(table.spec().fields()):
        update.removeField(field.name())
    for partition in partitions:
        update.addField(_term(spark, table, partition))
    update.commit()


def _term(spark: SparkSession, table: Any, partition: Partition) -> Any:
    """Return a partition as an Iceberg expression."""
    (kind, number), name = partition.parts, _spelt(table, partition.column)
    expressions = java_class(spark, _EXPRESSIONS)
    if kind == "identity":
        return expressions.ref(name)
    make = getattr(expressions, kind)
    return make(name, int(number)) if number else make(name)


def _sort(spark: SparkSession, table: Any, update: Any, order: Iterable[SortKey]) -> None:
    nulls, ref = java_class(spark, _NULL_ORDER), java_class(spark, _EXPRESSIONS).ref
    for key in order:
        add = update.desc if key.descending else update.asc
        place = nulls.NULLS_FIRST if key.nulls_first else nulls.NULLS_LAST
        add(ref(_spelt(table, key.column)), place)
    update.commit()


def _spelt(table: Any, path: str) -> str:
    """Return a column's path in the table's own spelling."""
    schema = table.schema()
    return str(schema.findColumnName(schema.caseInsensitiveFindField(path).fieldId()))
