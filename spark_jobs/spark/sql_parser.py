"""What a text of SQL says, by Spark's own parser."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from spark_jobs.spark.jvm import JavaError, each, first, java, java_session, said

_NO_READING = {
    "ScriptTransformation": "run a script",
    "RelationTimeTravel": "go back in time: it reads tables as they were when the file came",
    "PlanWithUnresolvedIdentifier": "make up a table's name: write it down",
}


@dataclass(frozen=True)
class Place:
    """Where in a query's text a table is named, from start to end; `name` has the name's parts."""

    name: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        """The name with dots."""
        return ".".join(self.name)


@dataclass(frozen=True)
class Read:
    """What a query reads: tables, and parts of its own that it names under WITH."""

    tables: tuple[Place, ...]
    parts: tuple[str, ...]


def require_expression(spark: SparkSession, text: str) -> None:
    """Raises Permanent BAD_CONDITION where a text is no expression of Spark SQL over one row.

    That is one expression and no more, without a query in it.
    """
    try:
        parsed = java_session(spark).sessionState().sqlParser().parseExpression(text)
    except JavaError as error:
        raise Permanent("BAD_CONDITION", f"{text} is no condition: {said(error)}") from error
    queries = java(spark).org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    if queries.hasSubquery(parsed):
        message = f"{text} has a query in it, and a condition looks at one row alone"
        raise Permanent("BAD_CONDITION", message)


def tables_read(spark: SparkSession, query: str) -> Read:
    """What a query reads, by Spark's own parser.

    Raises Permanent BAD_QUERY where it does anything else, one of `JavaError` where it is no query.
    """
    parser = java_session(spark).sessionState().sqlParser()
    nodes = list(_nodes(parser.parseQuery(query)))
    kinds = [str(node.getClass().getSimpleName()) for node in nodes]
    for kind in kinds:
        if kind in _NO_READING:
            raise Permanent("BAD_QUERY", f"a query cannot {_NO_READING[kind]}")
    tables, parts = [], []
    for node, kind in zip(nodes, kinds, strict=True):
        if kind == "UnresolvedRelation":
            origin, name = node.origin(), tuple(map(str, each(node.multipartIdentifier())))
            tables.append(Place(name, origin.startIndex().get(), origin.stopIndex().get() + 1))
        elif kind == "UnresolvedWith":
            parts += [str(first(named)) for named in each(node.cteRelations())]
        elif kind == "WithWindowDefinition":
            _require_plain(spark, node.windowDefinitions().values())
    return Read(tuple(dict.fromkeys(tables)), tuple(parts))


def parsed(spark: SparkSession, statement: str) -> Any:
    """Spark's plan (`LogicalPlan`) of one statement, before any name in it is looked up."""
    return java_session(spark).sessionState().sqlParser().parsePlan(statement)


def rows_to_update(spark: SparkSession, update: Any) -> int:
    """How many rows a parsed UPDATE (`UpdateTable`) would change, as its table now is."""
    rows = update.table()
    if update.condition().isDefined():
        plans = java(spark).org.apache.spark.sql.catalyst.plans.logical
        rows = plans.Filter(update.condition().get(), rows)
    found = java(spark).org.apache.spark.sql.classic.Dataset.ofRows(java_session(spark), rows)
    return int(found.count())


def forget_functions(spark: SparkSession, names: Iterable[str]) -> None:
    """Take built-in functions of Spark SQL from a session."""
    state = java_session(spark).sessionState()
    made = java(spark).org.apache.spark.sql.catalyst.FunctionIdentifier
    for name in names:
        state.functionRegistry().dropFunction(made(name))


def _require_plain(spark: SparkSession, windows: Any) -> None:
    """Raise Permanent BAD_QUERY for a query within WINDOW, where Spark's own walk finds none."""
    queries = java(spark).org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    if any(map(queries.hasSubquery, each(windows))):
        raise Permanent("BAD_QUERY", "a query cannot have another one in WINDOW")


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for below in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for inner in each(below):
            yield from _nodes(inner)
