"""Read rules of `type: sql`: one query that returns a number or a boolean.

A query only reads. This module judges what can be judged without Spark; the job has Spark's own
parser judge it again, and shows it only the tables that it names.
"""

import re
from collections.abc import Iterator

from lakegate.contract.columns import quoted
from lakegate.contract.rules import Query
from lakegate.contract.text.fields import Field

# The standard's, and those of the Data Contract CLI.
_OF_OBJECT = ("object", "table", "model")
_OF_PROPERTY = ("property", "column", "field")
_PLACEHOLDER = re.compile(rf"(`?)\$?{{({'|'.join((*_OF_OBJECT, *_OF_PROPERTY))})}}(\1)")
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<word>\w+)
    |(?P<unclosed>['"`]|/\*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_WRITING = ("INSERT", "UPDATE", "DELETE", "MERGE")
_KINDS = ("boolean", "double", "float", "int", "long", "number", "short", "string")
# Functions that no contract may call: any Java method, or a file that an argument names. XML names
# one, or an address, as its DTD.
NOT_CALLED = {
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), "runs any code"),
    **dict.fromkeys(("from_avro", "schema_of_avro", "from_xml", "schema_of_xml"), "can open files"),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), "can open files"),
    **dict.fromkeys(("xpath", *(f"xpath_{kind}" for kind in _KINDS)), "can open files"),
}
_NOT_CALLED = {**NOT_CALLED, "identifier": "makes up a name: write it down"}
_READS_ONLY = "must be one SELECT, which only reads"


def read_query(rule: Field, table: str, column: tuple[str, ...] = ()) -> Query:
    """Return the query of a rule on a table, or on one of its columns, given as steps to it.

    Placeholders are replaced by quoted names: `{object}`, `{table}`, `{model}` and `{property}`,
    `{column}`, `{field}`, each with or without `$`.
    """
    written = rule.required_text("query")
    if any(step == "[]" for step in column):
        rule.refuse("a query cannot be about the items of an array: put it at the schema object")
    names = {key: tuple(table.split(".")) for key in _OF_OBJECT}
    names |= {key: column for key in _OF_PROPERTY if column}
    for placeholder in _PLACEHOLDER.finditer(written):
        if placeholder[2] not in names:
            rule.refuse(f"{placeholder[0]} is for rules of a property, which this is not", "query")
    sql = _PLACEHOLDER.sub(lambda placeholder: _put(placeholder, names), written).strip()
    sql = sql.removesuffix(";").rstrip()
    if written and (reason := mistake(sql)):
        rule.refuse(reason, "query")
    return Query(sql)


def mistake(sql: str) -> str:
    """Return why a text is no read-only query, as far as its words tell; "" if it may be one."""
    return next(_mistakes(sql), "")


def read_condition(stated: Field, key: str) -> str:
    """Return the condition on one row under a key; refuse it for faults that its words show."""
    sql = stated.required_text(key)
    parts = tokens(sql)
    if sql and not parts:
        stated.refuse("is empty", key)
    for token, following in _pairs(parts):
        if token[0] == "(" and following.upper() == "SELECT":
            stated.refuse("must be a condition on one row, without a query", key)
        elif reason := _call(token, following):
            stated.refuse(reason, key)
    return sql


def names_all_columns(sql: str) -> bool:
    """Return if SQL names all columns of its rows by a `*`, as in `coalesce(*)`."""
    parts = tokens(sql)
    return any(each[0] in ("(", ",", ".") and next_ == "*" for each, next_ in _pairs(parts))


def tokens(sql: str) -> list[re.Match[str]]:
    """Return the texts, names, words and signs of SQL, without comments and blanks.

    The last one is what is never closed, if anything is: its end would be looked for again and
    again.
    """
    parts: list[re.Match[str]] = []
    for token in _TOKEN.finditer(sql):
        if token.lastgroup != "space":
            parts.append(token)
        if token.lastgroup == "unclosed":
            break
    return parts


def _pairs(tokens: list[re.Match[str]]) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each token with the text of the next one."""
    return zip(tokens, [*(each[0] for each in tokens[1:]), ""], strict=False)


def _mistakes(sql: str) -> Iterator[str]:
    parts = tokens(sql)
    words = [token[0].upper() for token in parts if token[0] != "("]
    if not words:
        yield "is empty"
    elif words[0] not in ("SELECT", "WITH"):
        yield f"{_READS_ONLY}, and begins with {words[0]}"
    if "${" in sql:
        yield "has ${ that is not a placeholder: Spark would put its own settings there"
    depth = 0
    for token, following in _pairs(parts):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth < 0:
            yield f"has a ) at character {token.start() + 1} that nothing opened"
        if words[0] == "WITH" and depth == 0 and token[0].upper() in _WRITING:
            yield f"{_READS_ONLY}, and has {token[0].upper()}"
        yield from _misplaced(token, following)
    if depth:
        yield "has a ( that is never closed"
    yield from _paths(parts)


def _misplaced(token: re.Match[str], following: str) -> Iterator[str]:
    character = f"at character {token.start() + 1}"
    if token.lastgroup == "unclosed":
        yield f"has {token[0]} {character}, which is never closed"
    elif token[0] == ";":
        yield f"{_READS_ONLY}, and has several statements"
    elif token[0] == "{":
        known = ", ".join(f"{{{name}}}" for name in (*_OF_OBJECT, *_OF_PROPERTY))
        yield f"has a {{ {character}: the placeholders are {known}"
    elif reason := _call(token, following):
        yield reason


def _call(token: re.Match[str], following: str) -> str:
    why = _NOT_CALLED.get(token[0].strip("`").lower()) if following == "(" else None
    return f"must not call {token[0]}, which {why}" if why else ""


def _paths(parts: list[re.Match[str]]) -> Iterator[str]:
    """Yield the files that a query names in place of tables, such as text.`/etc/passwd`.

    A table's name follows FROM, JOIN or TABLE, or a comma in the list after FROM. `clauses` says,
    for each bracket that is open, whether such a list is under way there. A word that ends the list
    may also be a table's alias there: then a comma follows it, or AS precedes it.
    """
    clauses, awaited, word = [False], False, ""
    for place, (token, following) in enumerate(_pairs(parts)):
        before, word = word, token[0].upper()
        if word in _TABLE_FOLLOWS or (word == "," and clauses[-1]):
            awaited = clauses[-1] = True
        elif word == "(":
            clauses.append(clauses[-1] and awaited)
        elif word == ")" and len(clauses) > 1:
            clauses.pop()
            awaited = False
        elif word in _ENDS_TABLES and following != "," and before != "AS":
            awaited = clauses[-1] = False
        elif awaited and word != "LATERAL":
            awaited = False
            if name := _path_of(parts[place : place + 3]):
                yield f"reads the file {name}: a query reads tables alone"


_TABLE_FOLLOWS = ("FROM", "JOIN", "TABLE")
_ENDS_TABLES = (
    *("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT"),
    *("OFFSET", "WINDOW", "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "MINUS"),
)


def _path_of(parts: list[re.Match[str]]) -> str:
    """Return the file that a table's name is; "" for a table."""
    texts = [token[0] for token in parts]
    is_path = len(parts) == 3 and texts[1] == "." and parts[2].lastgroup == "name"
    return "".join(texts) if is_path and set("/:") & set(texts[2]) else ""


def _put(placeholder: re.Match[str], names: dict[str, tuple[str, ...]]) -> str:
    return ".".join(map(quoted, names.get(placeholder[2], (placeholder[2],))))


_NO_CODE = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_CALLED = re.compile(r"\b(\w+)`?\s*\(")
_CHANGING = (
    *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "now", "curdate"),
    *("monotonically_increasing_id", "spark_partition_id", "user", "version"),
    *("input_file_name", "input_file_block_start", "input_file_block_length"),
)
_CHANGING_WORDS = re.compile(
    r"\b(current_(?:timestamp|date|time|timezone|user|catalog|database|schema)|localtimestamp"
    r"|session_user|tablesample|unix_timestamp\s*\(\s*\))",
    re.IGNORECASE,
)
# Texts that Spark takes for the time of the run where it makes a time of them.
_MOMENT = re.compile(r"""(['"])\s*(?:now|today|yesterday|tomorrow)\b[^'"]*\1""", re.IGNORECASE)
_TO_TIME = (
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "CAST", "TRY_CAST"),
    *("TO_DATE", "TRY_TO_DATE", "TO_TIMESTAMP", "TRY_TO_TIMESTAMP"),
)


def read_transform(settings: Field, format_: str) -> str:
    """Return the text of the transform in Spark SQL; "" without a transform.

    It is one SELECT over the landed file, which it reads as `file`.
    """
    if not settings.has("transform"):
        return ""
    sql = settings.required_text("transform").strip().removesuffix(";").rstrip()
    if reason := next(_transform_mistakes(sql), "") if sql else "":
        settings.refuse(reason, "transform")
    header = settings.at("options").at("header").node.text.lower()
    if format_ in ("csv", "tsv") and header == "false":
        settings.refuse("names the file's columns: the file needs a header", "transform")
    return sql


def _transform_mistakes(sql: str) -> Iterator[str]:
    """Return why the text is no transform, as far as its words tell."""
    if reason := mistake(sql):
        yield reason
    code = _NO_CODE.sub("''", sql)
    unquoted = _NAME.sub(" ", code)
    if not re.search(r"\bfile\b", code, re.IGNORECASE):
        yield "must read the landed file: SELECT … FROM file"
    called = [name for name in _CALLED.findall(code) if name.lower() in _CHANGING]
    for name in (*called, *_CHANGING_WORDS.findall(unquoted), *_moments(sql)):
        yield f"has {name}: a transform must make the same rows of a file each time that it runs"
    words = unquoted.upper().split()
    if {"LIMIT", "OFFSET"} & set(words) and "ORDER" not in words:
        yield "has LIMIT without ORDER BY, which takes other rows each time that it runs"


def _moments(sql: str) -> Iterator[str]:
    before = ""
    for token, following in _pairs(tokens(sql)):
        if _MOMENT.fullmatch(token[0]) and (before in _TO_TIME or following == ":"):
            yield token[0]
        before = before if token[0] == "(" else token[0].strip("`").upper()
