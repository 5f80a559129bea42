"""Give the rows of a text file their values, and tell the cells of those that cannot be parsed."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.columns import quoted
from spark_jobs.files.source import BAD_ROW
from spark_jobs.files.text.cells import Cell
from spark_jobs.files.text.text_lines import literal

_LONGEST_SHOWN, _LONGEST_ROW = 1000, 64 * 1024  # characters of a broken cell, and of its row
_IS_BAD = "is_bad"


NamedCell = tuple[str, Cell, str]  # its column's name, and its text as it stands in the file


def typed_by_cells(
    rows: DataFrame, cells: Sequence[NamedCell], row: str, is_wrong: str, kept: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """Return the rows with the values of cells, and the unparseable rows with their broken cells.

    Among the values a broken cell is null. The cells are read from columns of `rows`, and `row` is
    the row as it stands in the file. Where `is_wrong` holds, never null, the row is unparseable as
    a whole: nobody knows which cell is of which column, so all values are null, and no cell is
    named as broken. Both have the columns `kept` as well.
    """
    broken = " OR ".join([is_wrong, *(cell.broken for _, cell, _ in cells)])
    values = [f"{cell.value} AS v{n}" for n, (_, cell, _) in enumerate(cells)]
    typed = _computed_once(rows.selectExpr("*", *values, f"{broken} AS {_IS_BAD}"), _IS_BAD)
    named = ", ".join(_if_broken(*each) for each in cells)
    return typed.selectExpr(
        *[
            f"if({_IS_BAD} AND ({is_wrong} OR {cell.broken}), NULL, v{n}) AS {quoted(name)}"
            for n, (name, cell, _) in enumerate(cells)
        ],
        f"CASE WHEN {_IS_BAD} THEN {row} END AS {BAD_ROW}",
        *kept,
    ), typed.where(_IS_BAD).selectExpr(
        f"left({row}, {_LONGEST_ROW}) AS row",
        f"CASE WHEN NOT ({is_wrong}) THEN array_compact(array({named})) END AS cells",
        *kept,
    )


def _if_broken(name: str, cell: Cell, text: str) -> str:
    shown = f"named_struct('column', {literal(name)}, 'text', left({text}, {_LONGEST_SHOWN}))"
    return f"CASE WHEN {cell.broken} THEN {shown} END"


def _computed_once(rows: DataFrame, name: str) -> DataFrame:
    """Return the same rows, where a filter by the column `name` computes it no second time.

    Spark moves filters down, below what computes their columns, and computes these again for the
    filter, once for each mention. It moves none below a generator.
    """
    others = [column for column in rows.columns if column != name]
    return rows.select(*others, F.stack(F.lit(1), F.col(name)).alias(name))
