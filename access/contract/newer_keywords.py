"""Hint at keywords of a later version of the standard than a contract declares.

They are the difference of the official JSON Schemas of v3.0.2, v3.1.0 and v3.2.0, as far as
Lakegate reads it. Lakegate honours them anyway, but other tools validate a contract by the schema
of its version.
"""

from collections.abc import Iterator, Mapping

from lakegate.contract.text.problems import Problem
from lakegate.contract.text.yaml import Node

_NEWER_KEYS = {
    **dict.fromkeys(("metric", "relationships", "timezone", "defaultTimezone"), "v3.1.0"),
    **dict.fromkeys(("enum", "map", "semanticType", "deprecated", "synonyms", "context"), "v3.2.0"),
    **dict.fromkeys(("dimensions", "elementType", "distanceMetric", "embeddingModel"), "v3.2.0"),
    **dict.fromkeys(("embeddingModelVersion", "normalized"), "v3.2.0"),
}
_NEWER_TYPES = {"timestamp": "v3.1.0", "time": "v3.1.0", "map": "v3.2.0", "vector": "v3.2.0"}
_READ = ("schema", "properties", "items", "map", "quality", "logicalTypeOptions", "key", "value")


def newer_keywords(root: Node) -> Iterator[Problem]:
    """Yield a hint for the first use of each keyword that the declared version does not have."""
    given = root.value["apiVersion"].text if isinstance(root.value, Mapping) else ""
    seen: set[str] = set()
    for word, since, node, path in _keywords(root, ""):
        if since > given and word not in seen:
            seen.add(word)
            reason = f"{word} came with {since} of the standard: declare apiVersion: {since}"
            yield Problem(node.line, path, reason)


def _keywords(node: Node, path: str) -> Iterator[tuple[str, str, Node, str]]:
    """Yield each keyword of a later version, that version, and the place."""
    for key, each, place in node.parts(path):
        if key in _NEWER_KEYS:
            yield key, _NEWER_KEYS[key], each, place
        if key == "logicalType" and each.text in _NEWER_TYPES:
            yield each.text, _NEWER_TYPES[each.text], each, place
        if not key or key in _READ:
            yield from _keywords(each, place)
