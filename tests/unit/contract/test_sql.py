"""A contract's queries: their placeholders, and refusals without Spark."""

import pytest

from lakegate.contract.reading.sql import read_query
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import Problem
from lakegate.contract.text.yaml import load


def read(query: str, *column: str) -> tuple[str, list[str]]:
    """Return the SQL of a rule with this query, and the problems for which it is refused."""
    problems: list[Problem] = []
    text = "query: |\n" + "".join(f"  {line}\n" for line in query.splitlines())
    rule = Field(load(text, "a.yaml", problems), "", problems)
    sql = read_query(rule, "shop.orders", column).sql
    return sql, [problem.reason for problem in problems]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {object} WHERE {property} IS NULL",
        "SELECT count(*) FROM ${object} WHERE ${property} IS NULL",
        "SELECT count(*) FROM {table} WHERE {column} IS NULL;",
        "SELECT count(*) FROM `{table}` WHERE `${column}` IS NULL ;  ",
    ],
)
def test_every_placeholder_of_the_standard_is_put_in(query: str) -> None:
    """Each placeholder becomes the table or the column, quoted once."""
    wanted = "SELECT count(*) FROM `shop`.`orders` WHERE `od``d. name` IS NULL"
    sql, refused = read(query, "od`d. name")
    assert (sql.rstrip("; "), refused) == (wanted, [])


def test_a_nested_column_is_named_by_its_steps() -> None:
    """The placeholder of a nested column becomes its path."""
    assert read("SELECT max({column}) FROM {table}", "address", "zip code")[0] == (
        "SELECT max(`address`.`zip code`) FROM `shop`.`orders`"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {object} WHERE name RLIKE '^[0-9]{5}\\p{L}$'",
        "SELECT 1 -- ; DROP TABLE x {y}",
        "SELECT /* insert; { */ 1",
        "SELECT \"; { DELETE\", 'it''s (', `a)b;`",
        "WITH big AS (SELECT * FROM {object}) SELECT count(*) FROM big",
        "(SELECT 1) UNION (SELECT 2)",
        "SELECT update, delete FROM (SELECT 1 AS update, 2 AS delete)",
        "select reflect from {object}",
        "sElEcT 1",
        "SELECT text.`a/b`, b.`c:d` FROM b JOIN c ON b.`x/y` = c.`x/y`, d WHERE d.`e/f` > 1",
        "SELECT count(*) FROM b, (SELECT text.`a/b` AS x FROM text) ORDER BY text.`a/b`, b.`c/d`",
    ],
)
def test_a_query_that_only_reads_is_valid(query: str) -> None:
    """A read-only query may have any words and signs in comments, texts and names."""
    assert read(query)[1] == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("DELETE FROM {object}", "begins with DELETE"),
        ("SELECT 1; SELECT 2", "several statements"),
        ("WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a", "has INSERT"),
        ("DROP TABLE x", "begins with DROP"),
        ("SELECT count(*) FROM {object", "has a {"),
        ("SELECT count(*) FROM {objekt}", "has a {"),
        ("SELECT '${env:HOME}'", "has ${"),
        ("SELECT 'open", "never closed"),
        ("SELECT /* open", "never closed"),
        ("SELECT (1", "never closed"),
        ("SELECT 1)", "nothing opened"),
        ("SELECT reflect('java.lang.System', 'exit')", "runs any code"),
        ("SELECT `java_method` ('a', 'b')", "runs any code"),
        ("SELECT from_avro(a, '{}', map('avroSchemaUrl', 'file:/x')) FROM b", "can open files"),
        ("SELECT From_XML /* */ ('', 'a INT', map('rowValidationXSDPath', '/x'))", "open files"),
        ("SELECT xpath_int('<!DOCTYPE a SYSTEM \"http://x\"><a/>', 'a')", "open files"),
        ("SELECT XPATH(a, 'b') FROM c", "open files"),
        ("SELECT * FROM a.b, text.`/etc/passwd`", "reads the file text.`/etc/passwd`"),
        ("SELECT * FROM a b, c AS d, `csv`.`s3://x/y`", "reads the file `csv`.`s3://x/y`"),
        ("SELECT * FROM a JOIN b ON (a.x = b.x), text . `/x`", "reads the file text.`/x`"),
        ("SELECT * FROM a offset, text.`/x`", "reads the file"),
        ("SELECT * FROM a AS window (b), text.`/x`", "reads the file"),
        ("SELECT * FROM (a, text.`/x`)", "reads the file"),
        ("SELECT * FROM (SELECT 1), text.`/x`", "reads the file"),
        ("SELECT * FROM a, LATERAL text.`/x`", "reads the file"),
        ("SELECT * FROM a WHERE b IN (SELECT c FROM d, text.`/x`)", "reads the file"),
        ("SELECT * FROM IDENTIFIER('text.`/x`')", "makes up a name"),
        ("SELECT identifier('reflect')('a', 'b')", "makes up a name"),
        ("SELECT count(*) FROM text.`file:/x`", "reads the file text.`file:/x`"),
        ("SELECT 1 FROM {object} JOIN `csv` . `/x`", "reads the file `csv`.`/x`"),
        ("WITH `text.file:/x` AS (SELECT 1) SELECT 1 FROM text.`file:/x`", "reads the file"),
        ("SELECT {column} FROM {object}", "{column} is for rules of a property"),
        ("-- nothing", "is empty"),
    ],
)
def test_a_query_that_does_more_than_read_is_refused(query: str, reason: str) -> None:
    """Writes, several statements, calls of Java and unknown placeholders are refused."""
    refused = read(query)[1]
    assert len(refused) == 1
    assert reason in refused[0]


def test_a_query_is_about_no_items_of_an_array() -> None:
    """A query for the items of an array is refused."""
    assert "items of an array" in read("SELECT max({column}) FROM {table}", "lines", "[]")[1][0]
