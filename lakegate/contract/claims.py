"""Find the contract of a landed key, and refuse contracts that exclude each other."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unicodedata import normalize

import yaml

from lakegate.contract.model import Contract, qualified
from lakegate.errors import Permanent
from lakegate.text import few, one_line

_NAMES = ("name", "physicalName")


def claims(contract: Contract, key: str) -> bool:
    """Return if a landed key matches the contract's prefix, without regard to other contracts."""
    return key.startswith(contract.landing_prefix)


def claiming(contracts: Iterable[Contract], key: str) -> Contract:
    """Return the contract of a landed key: the one with the longest matching prefix.

    Raises Permanent NO_CONTRACT when none matches, and CONTRACTS_CLASH when two have that prefix:
    pushes at the same time do not see each other.
    """
    known = sorted(contracts, key=lambda contract: contract.landing_prefix)
    fitting = [contract for contract in known if claims(contract, key)]
    if not fitting:
        prefixes = few(contract.landing_prefix for contract in known)
        message = f"no contract claims the key {one_line(key)}: the landing prefixes are {prefixes}"
        if any(_composed(key).startswith(_composed(each.landing_prefix)) for each in known):
            message += "; one has its accents in another form of Unicode, NFC or NFD"
        raise Permanent("NO_CONTRACT", message)
    longest = max(fitting, key=lambda contract: len(contract.landing_prefix))
    tables = sorted(each.table for each in fitting if each.landing_prefix == longest.landing_prefix)
    if len(tables) > 1:
        message = f"{' and '.join(tables)} have the same landing prefix, {longest.landing_prefix}"
        raise Permanent("CONTRACTS_CLASH", f"{message}: push one with another, or withdraw one")
    return longest


def _composed(text: str) -> str:
    return normalize("NFC", text)


def refuse_clashes(contracts: Mapping[str, Contract]) -> None:
    """Refuse contracts, by the names of their texts, that exclude each other.

    Raises Permanent CONTRACTS_CLASH when two have one landing prefix or one table; tables whose
    names differ in capitals alone are one to Spark, AWS Glue and Snowflake.
    """
    owners: dict[tuple[str, str], tuple[str, str]] = {}
    for source, contract in sorted(contracts.items()):
        prefix, table = contract.landing_prefix, contract.table
        for what, given, one in (
            ("landing prefix", prefix, prefix),
            ("table", table, table.lower()),
        ):
            other, theirs = owners.setdefault((what, one), (source, given))
            if other != source:
                capitals = f": {theirs} and {given} differ in capitals alone"
                message = f"{other} and {source} have the same {what}, {one}"
                raise Permanent("CONTRACTS_CLASH", message + capitals * (theirs != given))


def could_claim(refused: bytes, key: str) -> bool:
    """Return if a landed key could belong to a text that is refused as a contract.

    It could by each landing prefix in the text, and by its table's default prefix; if neither can
    be read, any key could: a file must never be audited by another table's contract. No value is
    made of the text, as aliases and merge keys could make an endless one.
    """
    try:
        pairs = list(_pairs(yaml.compose(refused, yaml.BaseLoader)))
    except (yaml.YAMLError, ValueError, RecursionError):
        return True
    prefixes = {prefix for node in pairs for prefix in _prefixes(node)}
    is_merged = any(name == "<<" for node in pairs for name, _ in node)
    return is_merged or not (key and prefixes) or any(map(key.startswith, prefixes))


_Pairs = list[tuple[Any, Any]]  # a mapping's keys and values: texts, or lists of nodes


def _prefixes(node: _Pairs) -> Iterator[str]:
    is_prefix = ("property", "landingPrefix") in node
    for name, value in node:
        if name in _NAMES and isinstance(value, str):
            yield qualified(value).replace(".", "/") + "/"
        elif is_prefix and name == "value" and isinstance(value, str):
            yield value


def _pairs(document: Any) -> Iterator[_Pairs]:
    """Yield those of every mapping in a document once: aliases can make it endless."""
    seen: set[int] = set()
    left = [document]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield [(name.value, value.value) for name, value in node.value]
            left.extend(value for _, value in node.value)
        if isinstance(node, yaml.SequenceNode):
            left.extend(node.value)
