"""Find the file's column that each column of a table comes from."""

from collections.abc import Iterator

from lakegate.contract.model import Contract
from lakegate.contract.reading.sql import tokens

# Literals and functions of Spark that look like names.
_NO_NAMES = ("NULL", "TRUE", "FALSE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_USER")


def origins(contract: Contract) -> dict[str, str]:
    """Return the file's column with the values of each of the table's columns, as they are.

    A transform is read as far as it only selects and renames, as in `SELECT a, b AS c FROM file`.
    A column that is computed has no single origin and is left out; the job's SQL tells the rest.
    """
    if not contract.transform:
        return {column.name: column.name for column in contract.columns}
    known = {column.name.lower(): column.name for column in contract.columns}
    renamed = {name.lower(): field for name, field in _selected(contract.transform)}
    return {known[name]: field for name, field in renamed.items() if name in known}


def _selected(sql: str) -> Iterator[tuple[str, str]]:
    """Yield each plain column of a plain SELECT, and the file's column that it is."""
    words = [token[0] for token in tokens(sql)]
    upper = [word.upper() for word in words]
    is_plain = upper[:1] == ["SELECT"] and upper.count("SELECT") == upper.count("FROM") == 1
    if not is_plain or {"JOIN", "UNION", "GROUP", "DISTINCT", "LATERAL"} & {*upper}:
        return
    if upper[upper.index("FROM") + 1 :][:1] != ["FILE"]:
        return
    for item in _items(words[1 : upper.index("FROM")]):
        if item[1:2] == ["."] and item[0].lower() == "file":
            item = item[2:]  # noqa: PLW2901 - the table's name says nothing more
        names = [word.strip("`") for word in item if word.upper() != "AS"]
        if len(names) in (1, 2) and all(_is_name(word) for word in item):
            yield names[-1], names[0]


def _is_name(word: str) -> bool:
    return word.startswith("`") or (word.isidentifier() and word.upper() not in _NO_NAMES)


def _items(words: list[str]) -> Iterator[list[str]]:
    """Yield the items of a select list, which commas outside of brackets divide."""
    item: list[str] = []
    depth = 0
    for word in words:
        depth += (word in "([") - (word in ")]")
        if word == "," and depth == 0:
            yield item
            item = []
        else:
            item.append(word)
    yield item
