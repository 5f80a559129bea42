"""A contract's transform: valid statements, and refusals without Spark."""

import textwrap

import pytest

from tests.unit.contract.contract_texts import contract_text, parsed, problems_of


def settings(sql: str, format_: str = "parquet", options: str = "{}") -> str:
    text = textwrap.indent(sql, "    ")
    others = [("format", format_)] + ([("options", options)] if options != "{}" else [])
    listed = "".join(f"- {{property: {key}, value: {value}}}\n" for key, value in others)
    return f"{listed}- property: transform\n  value: |\n{text}\n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT try_cast(a AS bigint) AS id FROM file WHERE b <> 'now()';",
        "WITH f AS (SELECT * FROM FILE) SELECT id FROM f -- rand()",
        "SELECT id, max_by(price, ts) FROM file GROUP BY id",
        "SELECT `current_date` AS id, to_date(d) FROM `file`",
        "SELECT id FROM file ORDER BY id LIMIT 10",
        "SELECT unix_timestamp(t) AS id FROM file",
        "SELECT id, 'today' AS date FROM file WHERE day = DATE '2013-01-01' AND a = 'now'",
        "(SELECT id FROM file) UNION ALL (SELECT other FROM file)",
    ],
)
def test_a_select_over_the_file_is_taken(sql: str) -> None:
    """A SELECT over the file is kept as written, without its final semicolon."""
    assert parsed(settings=settings(sql)).transform == sql.removesuffix(";")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE FROM file", "begins with DELETE"),
        ("SELECT 1; DROP TABLE x", "several statements"),
        ("SELECT 1 AS id", "must read the landed file"),
        ("SELECT 'file' AS id", "must read the landed file"),
        ("SELECT rand() AS id FROM file", "has rand"),
        ("SELECT `uuid` () AS id FROM file", "has uuid"),
        ("SELECT Current_Timestamp AS id FROM file", "has Current_Timestamp"),
        ("SELECT unix_timestamp( ) AS id FROM file", "has unix_timestamp"),
        ("SELECT id FROM file WHERE day < date'today'", "has 'today'"),
        ("SELECT DATE /* there */ 'Today Europe/Berlin' AS id FROM file", "has 'Today Europe"),
        ("SELECT cast( 'now' AS timestamp) AS id FROM file", "has 'now'"),
        ("SELECT 'tomorrow'::date AS id FROM file", "has 'tomorrow'"),
        ('SELECT `date`("yesterday") AS id FROM file', 'has "yesterday"'),
        ("SELECT id FROM file TABLESAMPLE (10 PERCENT)", "has TABLESAMPLE"),
        ("SELECT id FROM file LIMIT 10", "LIMIT without ORDER BY"),
        ("SELECT reflect('java.lang.System', 'exit') FROM file", "runs any code"),
        ("SELECT (id FROM file", "never closed"),
    ],
)
def test_anything_else_is_refused(sql: str, reason: str) -> None:
    """A transform that writes, ignores the file or is not deterministic is refused."""
    (problem,) = problems_of(contract_text(settings=settings(sql)))
    assert problem.field == "customProperties.transform"
    assert reason in problem.reason


@pytest.mark.parametrize("format_", ["csv", "tsv"])
@pytest.mark.parametrize("no", ["false", "False"])
def test_a_csv_file_without_names_has_no_transform(format_: str, no: str) -> None:
    """A transform is refused for a CSV file without a header, because SQL needs column names."""
    text = contract_text(settings=settings("SELECT * FROM file", format_, f"{{header: {no}}}"))
    (problem,) = problems_of(text)
    assert "needs a header" in problem.reason


def test_a_transform_is_part_of_what_a_contract_demands() -> None:
    """A changed transform changes the requirements digest, so the file is audited again."""
    one, other = (parsed(settings=settings(f"SELECT {n} AS id FROM file")) for n in (1, 2))
    assert one.requirements_digest != other.requirements_digest
