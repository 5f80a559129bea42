"""The statement of a change: one DELETE, UPDATE or MERGE on its table, by Spark's own parser."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakegate.change import Change
from lakegate.errors import Permanent
from spark_jobs import jvm, parsing
from spark_jobs.session import CATALOG

_TARGETS = {"DeleteFromTable": "table", "UpdateTable": "table", "MergeIntoTable": "targetTable"}


@dataclass(frozen=True)
class Statement:
    """A statement that may be run: its text, and Spark's plan of it (`LogicalPlan`)."""

    text: str
    plan: Any

    @property
    def is_update(self) -> bool:
        """Whether it is an UPDATE."""
        return jvm.class_name(self.plan) == "UpdateTable"

    @property
    def is_merge(self) -> bool:
        """Whether it is a MERGE."""
        return jvm.class_name(self.plan) == "MergeIntoTable"


def read_statement(spark: SparkSession, change: Change) -> Statement:
    """The statement of a change. Raises Permanent BAD_STATEMENT when it is anything else."""
    try:
        plan = parsing.parsed(spark, change.statement)
    except jvm.JavaError as error:
        raise Permanent("BAD_STATEMENT", f"Spark cannot read it: {jvm.sentence(error)}") from error
    kind = jvm.class_name(plan)
    if kind not in _TARGETS:
        what = f"this is none ({kind})"
        if kind == "UnresolvedWith":
            what = "write what stands in WITH as a subquery"
        message = f"a change is one DELETE, UPDATE or MERGE: {what}"
        raise Permanent("BAD_STATEMENT", message)
    if kind == "MergeIntoTable" and plan.withSchemaEvolution():
        message = "a change leaves the table's columns alone: take WITH SCHEMA EVOLUTION away"
        raise Permanent("BAD_STATEMENT", message)
    _check_target(getattr(plan, _TARGETS[kind])(), change.table)
    return Statement(change.statement, plan)


def _check_target(target: Any, table: str) -> None:
    """That it is the table and nothing else, whatever alias it is given."""
    if jvm.class_name(target) == "SubqueryAlias":
        target = target.child()
    named: list[str] = []
    if jvm.class_name(target) == "UnresolvedRelation":
        named = jvm.texts(target.multipartIdentifier())
    wanted = table.split(".")
    if named not in (wanted, [CATALOG, *wanted]):
        found = ".".join(named) or "something else"
        message = f"it was asked for {table}, but the statement changes {found}"
        raise Permanent("BAD_STATEMENT", message)
