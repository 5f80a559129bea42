"""The same twelve checks by Great Expectations and by cuallee, as in their guides."""

import great_expectations as gx
from cuallee import Check, CheckLevel
from pyspark.sql import DataFrame

STATUSES = ("NEW", "PAID", "SHIPPED", "DONE")
EMAIL, CODE = "^[^@ ]+@[^@ ]+$", "^[A-Z]{2}-[0-9]+$"
MOST_ROWS = 10_000_000


def great_expectations(rows: DataFrame) -> int:
    """Return how many of the twelve checks hold."""
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_spark("bench").add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows})
    e = gx.expectations
    suite = gx.ExpectationSuite(
        name="twelve",
        expectations=[
            *(e.ExpectColumnValuesToNotBeNull(column=name) for name in ("id", "email", "status")),
            e.ExpectColumnValuesToBeInSet(column="status", value_set=list(STATUSES)),
            e.ExpectColumnValuesToBeBetween(column="amount", min_value=0, max_value=1000),
            e.ExpectColumnValuesToBeBetween(column="pieces", min_value=1, max_value=100),
            e.ExpectColumnValuesToMatchRegex(column="email", regex=EMAIL),
            e.ExpectColumnValuesToMatchRegex(column="code", regex=CODE),
            e.ExpectColumnValuesToBeUnique(column="id"),
            e.ExpectColumnValuesToBeUnique(column="email"),
            e.ExpectCompoundColumnsToBeUnique(column_list=["shop", "receipt"]),
            e.ExpectTableRowCountToBeBetween(min_value=1, max_value=MOST_ROWS),
        ],
    )
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    return sum(each.success for each in result.results)


def cuallee(rows: DataFrame) -> int:
    """Return how many of the twelve checks hold."""
    check = Check(CheckLevel.ERROR, "twelve")
    for name in ("id", "email", "status"):
        check.is_complete(name)
    check.is_contained_in("status", STATUSES)
    check.is_between("amount", (0.0, 1000.0)).is_between("pieces", (1, 100))
    check.has_pattern("email", EMAIL).has_pattern("code", CODE)
    check.is_unique("id").is_unique("email").are_unique(("shop", "receipt"))
    held = check.validate(rows).where("status = 'PASS'").count()
    return held + int(1 <= rows.count() <= MOST_ROWS)
