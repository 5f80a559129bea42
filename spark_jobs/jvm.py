"""What Spark's Python interface does not offer, taken from the JVM behind it.

PySpark has no public way to its own Java objects; every use of the private one is here.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakegate.errors import Permanent
from lakegate.report import DataFile

JavaError = (Py4JJavaError, CapturedException)
_DEEPEST = 10
_NO_READING = {
    "ScriptTransformation": "run a script",
    "RelationTimeTravel": "go back in time: it reads tables as they were when the file came",
    "PlanWithUnresolvedIdentifier": "make up a table's name: write it down",
}
_COMPARISONS = {
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
}


def find_iceberg_table(spark: SparkSession, name: str) -> Any | None:
    """The Iceberg table (`org.apache.iceberg.Table`) behind a name in Spark SQL, if it is there."""
    session = java(spark).org.apache.spark.sql.classic.SparkSession
    load = java(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    session.setActiveSession(spark._jsparkSession)  # whose catalogs Iceberg is to look in
    try:
        return load(spark._jsparkSession, name)
    except JavaError as error:
        if "NoSuchTableException" in causes(error)[0]:
            return None
        raise


def schema_of(spark: SparkSession, table: Any) -> StructType:
    """An Iceberg table's schema as Spark's."""
    convert = java(spark).org.apache.iceberg.spark.SparkSchemaUtil.convert
    return StructType.fromJson(json.loads(convert(table.schema()).json()))


def added_files(table: Any) -> list[Any]:
    """The data files (`org.apache.iceberg.DataFile`) that a table's current snapshot added."""
    snapshot = table.currentSnapshot()
    return list(snapshot.addedDataFiles(table.io()).iterator()) if snapshot else []


def described(file: Any) -> DataFile:
    """What a report says of a data file."""
    return DataFile(str(file.location()), file.recordCount(), file.fileSizeInBytes())


def nulls(table: Any, column: str, files: Sequence[Any]) -> int | None:
    """How many nulls a column has in data files, by their statistics; None if these say nothing."""
    field = table.schema().findField(column).fieldId()
    counts = [(file.nullValueCounts() or {}).get(field) for file in files]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def may_hold(
    spark: SparkSession, table: Any, files: Sequence[Any], column: str, comparison: str, value: Any
) -> bool:
    """Whether a row of the files may compare like this, or be NaN, by the files' statistics.

    `comparison` is <, <=, > or >=. `value` is of a Python type that Iceberg takes for the column's:
    int, float, or text for decimals, dates and timestamps.
    """
    iceberg = java(spark).org.apache.iceberg.expressions
    made = getattr(iceberg.Expressions, _COMPARISONS[comparison])(column, value)
    return _may_match(spark, table, files, made)


def may_hold_nan(spark: SparkSession, table: Any, files: Sequence[Any], column: str) -> bool:
    """Whether a value of a floating column may be NaN, by the files' statistics."""
    made = java(spark).org.apache.iceberg.expressions.Expressions.isNaN(column)
    return _may_match(spark, table, files, made)


def _may_match(spark: SparkSession, table: Any, files: Sequence[Any], expression: Any) -> bool:
    evaluator = java(spark).org.apache.iceberg.expressions.InclusiveMetricsEvaluator
    matches = evaluator(table.schema(), expression)
    return any(matches.eval(file) for file in files)


def require_expression(spark: SparkSession, text: str) -> None:
    """Raises Permanent BAD_CONDITION where a text is no expression of Spark SQL over one row.

    That is one expression and no more, without a query in it.
    """
    try:
        parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except JavaError as error:
        raise Permanent("BAD_CONDITION", f"{text} is no condition: {said(error)}") from error
    queries = java(spark).org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    if queries.hasSubquery(parsed):
        message = f"{text} has a query in it, and a condition looks at one row alone"
        raise Permanent("BAD_CONDITION", message)


def forget_functions(spark: SparkSession, names: Sequence[str]) -> None:
    """Take built-in functions of Spark SQL from a session."""
    state = spark._jsparkSession.sessionState()
    made = java(spark).org.apache.spark.sql.catalyst.FunctionIdentifier
    for name in names:
        state.functionRegistry().dropFunction(made(name))


@dataclass(frozen=True)
class Work:
    """What Spark has done: jobs, and what their stages read and shuffled; `stage` is the last."""

    stage: int = -1
    jobs: int = 0
    rows: int = 0
    bytes: int = 0
    shuffled: int = 0


def work_since(spark: SparkSession, before: Work) -> Work:
    """All that Spark has done, `before` being what was known of it."""
    context = spark._jsparkSession.sparkContext()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    stages = store.stageList(None, False, False, _no_quantiles(spark), None)
    new = list(_newest(stages, before.stage))
    return Work(
        stage=max([before.stage, *(stage.stageId() for stage in new)]),
        jobs=store.jobsList(None).size(),
        rows=before.rows + sum(stage.inputRecords() for stage in new),
        bytes=before.bytes + sum(stage.inputBytes() for stage in new),
        shuffled=before.shuffled + sum(stage.shuffleWriteBytes() for stage in new),
    )


def _newest(stages: Any, last: int) -> Iterator[Any]:
    """Spark's stages after one, of a Scala sequence that has the newest first."""
    for stage in _each(stages):
        if stage.stageId() <= last:
            return
        yield stage


def _each(scala: Any) -> Iterator[Any]:
    iterator = scala.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _no_quantiles(spark: SparkSession) -> Any:
    return _gateway(spark).new_array(java(spark).double, 0)


@dataclass(frozen=True)
class Place:
    """Where in a query's text a table is named: the name's parts with dots, from start to end."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Read:
    """What a query reads: tables, and parts of its own that it names under WITH."""

    tables: tuple[Place, ...]
    parts: tuple[str, ...]


def tables_read(spark: SparkSession, query: str) -> Read:
    """What a query reads, by Spark's own parser.

    Raises Permanent BAD_QUERY where it does anything else, one of `JavaError` where it is no query.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()
    nodes = list(_nodes(parser.parseQuery(query)))
    kinds = [str(node.getClass().getSimpleName()) for node in nodes]
    for kind in kinds:
        if kind in _NO_READING:
            raise Permanent("BAD_QUERY", f"a query cannot {_NO_READING[kind]}")
    tables, parts = [], []
    for node, kind in zip(nodes, kinds, strict=True):
        if kind == "UnresolvedRelation":
            origin, name = node.origin(), ".".join(map(str, _each(node.multipartIdentifier())))
            tables.append(Place(name, origin.startIndex().get(), origin.stopIndex().get() + 1))
        elif kind == "UnresolvedWith":
            parts += [str(named._1()) for named in _each(node.cteRelations())]
    return Read(tuple(dict.fromkeys(tables)), tuple(parts))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for below in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for inner in _each(below):
            yield from _nodes(inner)


def may_have(table: Any, where: Any) -> bool:
    """Whether any row of an Iceberg table may meet an expression of Iceberg's, by statistics."""
    files = table.newScan().filter(where).caseSensitive(False).planFiles()
    try:
        return bool(files.iterator().hasNext())
    finally:
        files.close()


def ends(spark: SparkSession, table: Any, column: str, files: Sequence[Any]) -> tuple[Any, Any]:
    """Bounds of a column in data files, by their statistics; None for one that is not known.

    Dates are days and timestamps microseconds since 1970; bounds of texts may lie a bit apart.
    """
    field = table.schema().findField(column)
    id_, convert = field.fieldId(), java(spark).org.apache.iceberg.types.Conversions.fromByteBuffer
    having = [f for f in files if (f.nullValueCounts() or {}).get(id_) != f.recordCount()]
    found = [[(f.lowerBounds() or {}).get(id_), (f.upperBounds() or {}).get(id_)] for f in having]
    if not found or any(bound is None for both in found for bound in both):
        return None, None
    typed = [[_comparable(convert(field.type(), bound)) for bound in both] for both in found]
    return min(low for low, _ in typed), max(high for _, high in typed)


def _comparable(bound: Any) -> Any:
    """A value of Iceberg's in Python; a text is some other Java class to it."""
    return bound if isinstance(bound, int | float | Decimal) else str(bound.toString())


def gained_files(
    spark: SparkSession, table: Any, older: Any | None, where: Any | None = None
) -> list[Any]:
    """The data files (`org.apache.iceberg.DataFile`) that a table has and its older state had not.

    `where` is an Iceberg expression: files whose statistics exclude it are left out. Only manifests
    in which the two states differ are read, so the cost is that of what changed.
    """
    now, before = _manifests(table), _manifests(older) if older is not None else {}
    new = [now[path] for path in now.keys() - before.keys()]
    old = [before[path] for path in before.keys() - now.keys()]
    had = {file.location() for manifest in old for file in _files(spark, table, manifest)}
    found = [file for manifest in new for file in _files(spark, table, manifest, where)]
    return [file for file in found if file.location() not in had]


def has_deletes(table: Any) -> bool:
    """Whether rows of an Iceberg table's data files were deleted without rewriting the files."""
    snapshot = table.currentSnapshot()
    return snapshot is not None and not snapshot.deleteManifests(table.io()).isEmpty()


def expression(spark: SparkSession, name: str, condition: str) -> Any:
    """A condition in Spark SQL on the table behind a name, as an Iceberg expression."""
    convert = java(spark).org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = convert.collectResolvedSparkExpression(spark._jsparkSession, name, condition)
    return convert.convertToIcebergExpression(resolved)


def rows_of(spark: SparkSession, table: Any, files: Sequence[Any]) -> DataFrame:
    """The rows in some of an Iceberg table's data files, as its own scans read them.

    Iceberg's own rewriting of files reads like this: a set of scan tasks under a name.
    """
    iceberg = java(spark).org.apache.iceberg
    name = uuid.uuid4().hex
    schema = iceberg.SchemaParser.toJson(table.schema())
    all_rows = iceberg.expressions.ResidualEvaluator.unpartitioned(
        iceberg.expressions.Expressions.alwaysTrue()
    )
    none = _gateway(spark).new_array(iceberg.DeleteFile, 0)
    tasks = java(spark).java.util.ArrayList()
    for file in files:
        spec = iceberg.PartitionSpecParser.toJson(table.specs().get(file.specId()))
        tasks.add(iceberg.BaseFileScanTask(file, none, schema, spec, all_rows))
    iceberg.spark.SparkTableCache.get().add(name, table)
    iceberg.spark.ScanTaskSetManager.get().stageTasks(table, name, tasks)
    return spark.read.format("iceberg").option("scan-task-set-id", name).load(name)


def _manifests(table: Any) -> dict[str, Any]:
    snapshot = table.currentSnapshot()
    found = snapshot.dataManifests(table.io()) if snapshot else ()
    return {str(manifest.path()): manifest for manifest in found}


def _files(
    spark: SparkSession, table: Any, manifest: Any, where: Any | None = None
) -> Iterator[Any]:
    read = java(spark).org.apache.iceberg.ManifestFiles.read
    reader = read(manifest, table.io(), table.specs())
    try:
        yield from (reader.filterRows(where) if where is not None else reader).iterator()
    finally:
        reader.close()


def parquet_reader(spark: SparkSession, path: str) -> Any:
    """An open `org.apache.parquet.hadoop.ParquetFileReader`: its caller closes it."""
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    location = java(spark).org.apache.hadoop.fs.Path(path)
    parquet = java(spark).org.apache.parquet.hadoop
    file = parquet.util.HadoopInputFile.fromPath(location, hadoop)
    return parquet.ParquetFileReader.open(file)


def parquet(spark: SparkSession, schema: str, rows: str, run_ts: str) -> bytes:
    """Rows as a Parquet file with Iceberg's field ids.

    `schema` is Iceberg's, `rows` a list of objects, both as JSON; all rows get the time `run_ts`.
    Whole numbers must be `long` in the schema.
    """
    iceberg, jackson = java(spark).org.apache.iceberg, java(spark).com.fasterxml.jackson.databind
    columns = iceberg.SchemaParser.fromJson(schema)
    row = iceberg.data.GenericRecord.create(columns)
    row.setField("run_ts", java(spark).java.time.OffsetDateTime.parse(run_ts))
    out = iceberg.inmemory.InMemoryOutputFile()
    kind = iceberg.FileFormat.PARQUET
    appender = iceberg.data.GenericAppenderFactory(columns).newAppender(out, kind)
    longs = jackson.DeserializationFeature.USE_LONG_FOR_INTS
    list_ = java(spark).java.lang.Class.forName("java.util.List")
    # In one go: each value handed over by itself would be a call of its own.
    mapper = jackson.ObjectMapper()
    mapper.configure(longs, True)
    for values in mapper.readValue(rows, list_):
        appender.add(row.copy(values))
    appender.close()
    return bytes(out.toByteArray())


def orc_reader(spark: SparkSession, path: str) -> Any:
    """An open `org.apache.orc.Reader`: its caller closes it."""
    orc = java(spark).org.apache.orc.OrcFile
    options = orc.readerOptions(spark._jsparkSession.sessionState().newHadoopConf())
    return orc.createReader(java(spark).org.apache.hadoop.fs.Path(path), options)


def orc_schema(spark: SparkSession, orc_type: Any) -> StructType:
    """An ORC schema (`TypeDescription`) as Spark's."""
    utils = java(spark).org.apache.spark.sql.execution.datasources.orc.OrcUtils
    return StructType.fromJson(json.loads(utils.toCatalystSchema(orc_type).json()))


def time_zone(spark: SparkSession) -> str:
    """The time zone of the JVM, such as Etc/UTC."""
    return str(java(spark).java.util.TimeZone.getDefault().getID())


def spark_schema(spark: SparkSession, parquet_schema: Any) -> StructType:
    """A Parquet schema (`MessageType`) as Spark's."""
    package = java(spark).org.apache.spark.sql.execution.datasources.parquet
    conf = spark._jsparkSession.sessionState().conf()
    converted = package.ParquetToSparkSchemaConverter(conf).convert(parquet_schema)
    return StructType.fromJson(json.loads(converted.json()))


def parsed(spark: SparkSession, statement: str) -> Any:
    """Spark's plan (`LogicalPlan`) of one statement, before any name in it is looked up."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)


def rows_to_update(spark: SparkSession, update: Any) -> int:
    """How many rows a parsed UPDATE (`UpdateTable`) would change, as its table now is."""
    rows = update.table()
    if update.condition().isDefined():
        plans = java(spark).org.apache.spark.sql.catalyst.plans.logical
        rows = plans.Filter(update.condition().get(), rows)
    found = java(spark).org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, rows)
    return int(found.count())


def summary(table: Any) -> dict[str, str]:
    """The summary of an Iceberg table's current snapshot; empty where it has none."""
    snapshot = table.currentSnapshot()
    return {} if snapshot is None else {str(k): str(v) for k, v in snapshot.summary().items()}


def class_name(thing: Any) -> str:
    """The name of a Java object's class, without its package."""
    return str(thing.getClass().getSimpleName())


def texts(sequence: Any) -> list[str]:
    """The texts in one of Scala's sequences."""
    return [str(sequence.apply(n)) for n in range(sequence.size())]


def is_refusal(error: BaseException) -> bool:
    """Whether Spark refuses what it was told, by a name of its own (its "error conditions")."""
    return isinstance(error, CapturedException) and bool(error.getCondition())


def sentence(error: BaseException) -> str:
    """What a Java exception says, without the statement and the plan that Spark adds."""
    text = str(error) if isinstance(error, CapturedException) else causes(error)[0]
    return text.split("\n== SQL", 1)[0].split(";\n", 1)[0].strip()[:500]


def causes(error: BaseException) -> list[str]:
    """A Java exception and what caused it, each as `class: message`, the root cause last."""
    origin = "java_exception" if isinstance(error, Py4JJavaError) else "_origin"
    cause = getattr(error, origin)
    chain: list[str] = []
    while cause is not None and len(chain) < _DEEPEST:
        chain.append(str(cause.toString()))
        cause = cause.getCause()
    return chain


def said(error: BaseException) -> str:
    """What a Java exception says at its root: the first line, without the class and the stack."""
    chain = causes(error)
    line = (chain[-1] if chain else str(error)).partition("\n")[0]
    return (line.partition(": ")[2] or line)[:500]


def _gateway(spark: SparkSession) -> Any:
    return spark._sc._gateway


def java(spark: SparkSession) -> Any:
    """The JVM's packages."""
    return spark._jvm
