"""Parse SQL with Spark's own parser, and refuse what a contract or change may not contain."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from spark_jobs.spark.jvm import (
    JavaError,
    class_name,
    first,
    items_of,
    java,
    java_session,
    root_message,
)

_NO_READING = {
    "ScriptTransformation": "run a script",
    "RelationTimeTravel": "use time travel: it reads tables at one commit",
    "PlanWithUnresolvedIdentifier": "compute a table's name: write the name",
}


@dataclass(frozen=True)
class Place:
    """A table's name in a query's text, from start to end; `name` has its parts."""

    name: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        """Return the name with dots."""
        return ".".join(self.name)


@dataclass(frozen=True)
class Read:
    """The tables that a query reads, and the parts that it defines under WITH."""

    tables: tuple[Place, ...]
    parts: tuple[str, ...]


def require_expression(spark: SparkSession, text: str) -> None:
    """Raise Permanent BAD_CONDITION unless a text is one Spark SQL expression over a row.

    A subquery within it is refused too.
    """
    try:
        parsed = java_session(spark).sessionState().sqlParser().parseExpression(text)
    except JavaError as error:
        raise Permanent(
            "BAD_CONDITION", f"{text} is not a condition: {root_message(error)}"
        ) from error
    queries = java(spark).org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    if queries.hasSubquery(parsed):
        message = f"{text} contains a query, but a condition can only read its own row"
        raise Permanent("BAD_CONDITION", message)


def tables_read(spark: SparkSession, query: str) -> Read:
    """Return the tables that a query reads, by Spark's own parser.

    Raises Permanent BAD_QUERY if it does anything but read, one of `JavaError` if it is no query.
    """
    parser = java_session(spark).sessionState().sqlParser()
    nodes = list(_nodes(parser.parseQuery(query)))
    kinds = list(map(class_name, nodes))
    for kind in kinds:
        if kind in _NO_READING:
            raise Permanent("BAD_QUERY", f"a query cannot {_NO_READING[kind]}")
    tables, parts = [], []
    for node, kind in zip(nodes, kinds, strict=True):
        if kind == "UnresolvedRelation":
            origin, name = node.origin(), tuple(map(str, items_of(node.multipartIdentifier())))
            tables.append(Place(name, origin.startIndex().get(), origin.stopIndex().get() + 1))
        elif kind == "UnresolvedWith":
            parts += [str(first(named)) for named in items_of(node.cteRelations())]
        elif kind == "WithWindowDefinition":
            _require_plain(spark, node.windowDefinitions().values())
    return Read(tuple(dict.fromkeys(tables)), tuple(parts))


def parsed(spark: SparkSession, statement: str) -> Any:
    """Return Spark's plan (`LogicalPlan`) of one statement, before names in it are resolved."""
    return java_session(spark).sessionState().sqlParser().parsePlan(statement)


def rows_to_update(spark: SparkSession, update: Any) -> int:
    """Return how many rows a parsed UPDATE (`UpdateTable`) would change now."""
    rows = update.table()
    if update.condition().isDefined():
        plans = java(spark).org.apache.spark.sql.catalyst.plans.logical
        rows = plans.Filter(update.condition().get(), rows)
    dataset = java(spark).org.apache.spark.sql.classic.Dataset.ofRows(java_session(spark), rows)
    return int(dataset.count())


def forget_functions(spark: SparkSession, names: Iterable[str]) -> None:
    """Remove built-in functions of Spark SQL from a session."""
    state = java_session(spark).sessionState()
    made = java(spark).org.apache.spark.sql.catalyst.FunctionIdentifier
    for name in names:
        state.functionRegistry().dropFunction(made(name))


def _require_plain(spark: SparkSession, windows: Any) -> None:
    """Raise Permanent BAD_QUERY for a subquery in WINDOW, which Spark's own walk does not find."""
    queries = java(spark).org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    if any(map(queries.hasSubquery, items_of(windows))):
        raise Permanent("BAD_QUERY", "a query cannot have a subquery in WINDOW")


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for below in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for inner in items_of(below):
            yield from _nodes(inner)
