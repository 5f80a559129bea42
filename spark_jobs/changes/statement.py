"""The SQL statements that a change may be: one DELETE, UPDATE or MERGE on its table."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from lakegate.job.change import Change
from spark_jobs.spark import jvm, sql_parser
from spark_jobs.spark.session import CATALOG

# Spark's parser names each statement that a change may be, and the attribute with its table.
_TARGETS = {"DeleteFromTable": "table", "UpdateTable": "table", "MergeIntoTable": "targetTable"}


@dataclass(frozen=True)
class Statement:
    """A statement that may run: its text, and Spark's plan of it (`LogicalPlan`)."""

    text: str
    plan: Any

    @property
    def is_update(self) -> bool:
        """Return if it is an UPDATE."""
        return jvm.class_name(self.plan) == "UpdateTable"

    @property
    def is_merge(self) -> bool:
        """Return if it is a MERGE."""
        return jvm.class_name(self.plan) == "MergeIntoTable"


def read_statement(spark: SparkSession, change: Change) -> Statement:
    """Return the statement of a change. Raises Permanent BAD_STATEMENT for any other SQL."""
    try:
        plan = sql_parser.parsed(spark, change.statement)
    except jvm.JavaError as error:
        raise Permanent(
            "BAD_STATEMENT", f"Spark cannot parse the statement: {jvm.short_message(error)}"
        ) from error
    kind = jvm.class_name(plan)
    if kind not in _TARGETS:
        hint = f"Spark parses this as {kind}"
        if kind == "UnresolvedWith":
            hint = "write the part in WITH as a subquery"
        message = f"a change must be one DELETE, UPDATE or MERGE: {hint}"
        raise Permanent("BAD_STATEMENT", message)
    if kind == "MergeIntoTable" and plan.withSchemaEvolution():
        message = "a change cannot alter columns: remove WITH SCHEMA EVOLUTION"
        raise Permanent("BAD_STATEMENT", message)
    _check_target(getattr(plan, _TARGETS[kind])(), change.table)
    return Statement(change.statement, plan)


def _check_target(target: Any, table: str) -> None:
    """Raise Permanent BAD_STATEMENT unless the statement's target is the table, under any alias."""
    if jvm.class_name(target) == "SubqueryAlias":
        target = target.child()
    named: list[str] = []
    if jvm.class_name(target) == "UnresolvedRelation":
        named = list(map(str, jvm.items_of(target.multipartIdentifier())))
    wanted = table.split(".")
    if named not in (wanted, [CATALOG, *wanted]):
        changed = ".".join(named) or "something else"
        message = f"the change is for {table}, but its statement changes {changed}"
        raise Permanent("BAD_STATEMENT", message)
