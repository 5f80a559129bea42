"""Hints for authors of contracts: settings that are valid, but probably not intended or costly."""

import re
from collections.abc import Iterator

from access.contract.newer_keywords import newer_keywords
from lakegate.contract.columns import (
    JSON,
    OPEN_SCALE,
    default_type,
    has_open_digits,
    is_known,
    says_nothing,
)
from lakegate.contract.model import Contract
from lakegate.contract.reading.options import OF_RULE
from lakegate.contract.reading.properties import NESTED
from lakegate.contract.reading.quality.custom import ENGINE
from lakegate.contract.reading.service_levels import DUE
from lakegate.contract.reading.values import excluded
from lakegate.contract.rules import listed
from lakegate.contract.sharing import why_alone, why_own_run
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import Problem
from lakegate.contract.text.yaml import Node
from spark_jobs.audit.arrow.patterns import means_the_same

_FLOATS = ("", "double", "float", "real", "double precision")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# fmt: off
_PERSONAL = {
    "email", "mail", "phone", "telephone", "mobile", "fax", "iban", "bic", "ssn", "passport",
    "birthday", "birthdate", "birth", "dob", "surname", "firstname", "lastname", "fullname",
    "username", "street", "address", "salary", "gender", "ip", "password",
}
_PERSONS = {
    "first", "last", "middle", "full", "maiden", "given", "family", "user", "customer", "client",
    "person", "contact", "patient", "employee", "member", "passenger", "guest", "holder",
}
_MONEY = {
    "price", "amount", "amt", "cost", "total", "fee", "tax", "vat", "salary", "revenue", "discount",
    "balance", "payment", "fare", "tip", "charge", "turnover", "budget",
}
_NO_MONEY = {
    "rate", "pct", "percent", "percentage", "ratio", "share", "type", "kind", "code", "class",
    "category", "status", "method", "count", "quantity", "qty", "number", "no", "id", "index",
}
_CURLY = re.compile("^[\u201c\u201d\u201e\u2018\u2019].*[\u201c\u201d\u2018\u2019]$")
_PROSE = ("description", "businessName", "transformLogic", "transformDescription")
_KEYS = {"id", "uuid", "guid", "key", "code", "number", "no", "sku", "iban", "isbn", "ean"}
# fmt: on


def hints(tree: Node, contract: Contract) -> tuple[Problem, ...]:
    """Return suggestions to improve a valid contract with this tree, in the order of the lines."""
    root = Field(tree, "", [])
    parts = ("schema", "support")
    suggestions = [hint for part in parts for hint in _curly_quotes(root.at(part).node, part)]
    suggestions += newer_keywords(root.node)
    for table in root.at("schema").items():
        suggestions += _on_rules(table)
        for column, classified in _columns(table.at("properties")):
            suggestions += [*_on_column(column, classified=classified), *_on_rules(column)]
        suggestions += [*_on_checks(table, contract), *_on_values(contract)]
        suggestions += _on_sharing(table, contract)
        suggestions += _on_key(table, contract)
    for place in (root, *root.at("schema").items()):
        suggestions += _on_prefix(place.at("customProperties"), contract)
    suggestions += _on_levels(root, contract)
    if not contract.channel:
        suggestions.append(
            _hint(
                root, "support", "without a Slack channel, no owner is notified of a rejected file"
            )
        )
    return tuple(sorted(suggestions, key=lambda hint: hint.line))


def _curly_quotes(node: Node, path: str) -> Iterator[Problem]:
    """Yield the texts within curly quotes, which YAML takes for a part of the text."""
    if _CURLY.match(node.text):
        yield Problem(node.line, path, "curly quotes belong to the text here: write ' or \"")
    for key, each, place in node.parts(path):
        if key not in _PROSE:
            yield from _curly_quotes(each, place)


def _columns(properties: Field, *, classified: bool = False) -> Iterator[tuple[Field, bool]]:
    for column in properties.items():
        yield from _within(column, classified=classified)


def _within(column: Field, *, classified: bool) -> Iterator[tuple[Field, bool]]:
    """Yield a column and all that lie within it, and whether it or one around it is classified."""
    classified = classified or column.has("classification")
    yield column, classified
    yield from _columns(column.at("properties"), classified=classified)
    parts = (column.at("items"), column.at("map").at("key"), column.at("map").at("value"))
    for part in (each for each in parts if each.given):
        yield from _within(part, classified=classified)


def _on_column(column: Field, *, classified: bool) -> Iterator[Problem]:
    name = column.text("name")
    if looks_personal(name) and not classified:
        reason = "looks personal: hide it in reports and alerts with classification: confidential"
        yield _hint(column, "name", reason)
    yield from _on_type(column)
    is_double = column.text("physicalType").lower() in _FLOATS
    if is_double and column.text("logicalType") == "number" and looks_like_money(name):
        reason = "looks like money, but a double rounds: use physicalType: decimal(12,2)"
        yield _hint(column, "name", reason)
    whole_value = column.flag("unique") or column.flag("primaryKey") or looks_like_a_key(name)
    options = [rule.at("arguments") for rule in column.at("quality").items()]
    for place in (column.at("logicalTypeOptions"), *options):
        if place.has("pattern") and not _anchored(place.text("pattern"), whole_value=whole_value):
            reason = "matches anywhere in the value: add ^ and $ to match all of it"
            yield _hint(place, "pattern", reason)
        if place.has("pattern") and not means_the_same(place.text("pattern")):
            reason = (
                "only Spark can search for this: each file takes longer, and a value on which the "
                "search itself takes very long ends its file (TIMED_OUT)"
            )
            yield _hint(place, "pattern", reason)


def _on_rules(place: Field) -> Iterator[Problem]:
    """Yield the rules, and the options of rules, that only another tool knows."""
    for rule in place.at("quality").items():
        if rule.text("engine", ENGINE) != ENGINE:
            yield _hint(rule, "engine", "another tool checks this, and Lakegate does not")
        for option in rule.at("customProperties").items():
            if option.text("property") not in OF_RULE:
                yield _hint(option, "property", "is no option here, and changes no check")


def _on_type(column: Field) -> Iterator[Problem]:
    """Yield which type a column has that its physical type leaves open."""
    physical, logical = column.text("physicalType"), column.text("logicalType")
    if logical not in NESTED and logical and physical and says_nothing(physical, logical):
        reason = f"{physical} is no type that Lakegate knows: the column is {default_type(logical)}"
        if is_known(physical):
            reason = f"{physical} is how another system keeps it: the column is {logical} here"
        yield _hint(column, "physicalType", reason)
    if logical == "object" and physical.lower() in JSON and not column.has("properties"):
        reason = "is text here: Lakegate reads it from cells of text, and checks nothing within"
        yield _hint(column, "physicalType", reason)
    if has_open_digits(physical) and logical != "integer":
        reason = f"leaves its digits open: the column has {OPEN_SCALE} after the point for ever"
        yield _hint(column, "physicalType", f"{reason}; write for example decimal(12,2)")


def _on_prefix(settings: Field, contract: Contract) -> Iterator[Problem]:
    """Yield that a landing prefix is no whole folder, so that other folders begin with it."""
    for setting in settings.items():
        prefix = contract.landing_prefix
        if setting.text("property") == "landingPrefix" and prefix[-1:].isalnum():
            reason = f"takes files of {prefix}_2/ as well: write {prefix}/ if it is a folder"
            yield _hint(setting, "value", reason)


def _on_levels(root: Field, contract: Contract) -> Iterator[Problem]:
    """Yield the service levels that are of no table here, where the table has none."""
    for level in root.at("slaProperties").items():
        if level.text("property") in DUE and not contract.expected:
            reason = "names neither the table nor a column of it: no file is overdue by this"
            yield _hint(level, "element", reason)


def _on_checks(table: Field, contract: Contract) -> Iterator[Problem]:
    """Yield that any file whose columns can be read passes."""
    if not contract.checks:
        reason = "asks for no check, such as required: true on a column: any row that can be read"
        yield Problem(table.node.line, table.path, f"{reason} is published")


def _on_values(contract: Contract) -> Iterator[Problem]:
    """Yield the listed values that the limits of the same rule do not allow."""
    for check in (check for check in contract.checks if check.values.valid_values):
        if out := excluded(check.values, contract.column(check.columns[0])):
            reason = f"lists {listed(out)}, which its own limits do not allow"
            yield Problem(check.line, check.id, reason)


def _on_sharing(table: Field, contract: Contract) -> Iterator[Problem]:
    """Yield why many small files of the contract take longer and cost more than others."""
    if why := why_own_run(contract):
        yield Problem(table.node.line, table.path, f"each file has a job run of its own: {why}")
    elif why := why_alone(contract):
        reason = f"files share job runs, but each is ingested alone: {why}"
        yield Problem(table.node.line, table.path, reason)


def _on_key(table: Field, contract: Contract) -> Iterator[Problem]:
    """Yield that a primary key is checked within each file, unless a rule looks further."""
    looks_further = (check.checks_whole_table for check in contract.checks)
    keys = [column for column in table.at("properties").items() if column.flag("primaryKey")]
    if keys and not any(looks_further) and not contract.write_mode.merges:
        reason = "is unique per file only: add a rule duplicateValues with scope: table"
        yield _hint(keys[0], "primaryKey", f"{reason} to compare with the table")


def _anchored(pattern: str, *, whole_value: bool) -> bool:
    """Return whether a pattern has an anchor at one end, or at both ends if `whole_value`."""
    ends = (pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith(r"\$"))
    return all(ends) if whole_value else any(ends)


def _hint(field: Field, key: str, reason: str) -> Problem:
    place = field.at(key)
    return Problem(place.node.line, place.path, reason)


def looks_personal(name: str) -> bool:
    """Return whether a column's name suggests personal data: `email`, `customer_name`, `name`."""
    words = _words(name)
    a_persons_name = "name" in words and (len(words) == 1 or bool(_PERSONS.intersection(words)))
    return a_persons_name or bool(_PERSONAL.intersection(words))


def looks_like_money(name: str) -> bool:
    """Return whether a column's name suggests an amount of money: `unitPrice`, not `tax_pct`."""
    words = _words(name)
    return bool(_MONEY.intersection(words)) and not _NO_MONEY.intersection(words)


def looks_like_a_key(name: str) -> bool:
    """Return whether a column's name suggests an identifier: `order_id`, `sku`."""
    return bool(_KEYS.intersection(_words(name)[-1:]))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
