"""Read a contract's text as a tree of nodes that remember their lines, and its problems.

Scalars are read as YAML 1.2 reads them: `NO` and `2013-01-01` are text and `010` is ten, unlike in
YAML 1.1. Notations that would silently change the meaning are refused: keys given twice, merge
keys, unknown tags, several documents, and aliases that unfold without end.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from lakegate.contract.text.problems import ContractInvalid, Problem
from lakegate.limits import DEFAULTS, Limits

_MAX_DEPTH = 50
_LONGEST_NUMBER = 400  # characters: as many as a float has at most, written out
_TAG = "tag:yaml.org,2002:"
Scalar = bool | int | float | str | None


@dataclass(frozen=True)
class Node:
    """A value in a contract; `text` is the source of a scalar, without quotes."""

    line: int
    value: "Scalar | tuple[Node, ...] | Mapping[str, Node]"
    text: str = ""

    def plain(self) -> object:
        """Return the value as Python's own lists and dictionaries."""
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value

    def parts(self, path: str) -> "Iterator[tuple[str, Node, str]]":
        """Yield what a list or a mapping at a path has: key ("" in a list), value and path."""
        if isinstance(self.value, tuple):
            for number, node in enumerate(self.value):
                yield "", node, f"{path}[{number}]"
        elif isinstance(self.value, Mapping):
            for key, node in self.value.items():
                yield key, node, f"{path}.{key}".removeprefix(".")


def load(text: str, source: str, problems: list[Problem], limits: Limits = DEFAULTS) -> Node:
    """Return the tree of a YAML text. Keys given twice become `problems`; the first one stays.

    Raises ContractInvalid when there is no tree: invalid YAML, empty, too large or too deep.
    """
    if len(text.encode(errors="surrogatepass")) > limits.largest_contract:
        reason = f"the text is longer than {limits.largest_contract:,} bytes"
        raise ContractInvalid(source, [Problem(1, "", reason)])
    try:
        root = _Tree(text, problems, limits.most_contract_values).root()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(filter(None, (error.context, error.problem)))
        line, before, rest = _divided(text, mark.line, mark.column) if mark else (1, "", "")
        reason = f"{_plainly(reason, before, rest)} (column {len(before) + 1})"
        raise _not_yaml(source, line, reason) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _not_yaml(source, line, f"the character U+{error.character:04X}") from error
    except (ValueError, OverflowError) as error:  # an escape that is no character: "\UFFFFFFFF"
        raise _not_yaml(source, 1, str(error)) from error
    if root is None or root.value is None:
        raise ContractInvalid(source, [Problem(1, "", "the text is empty")])
    return root


# The parser's words for a mistake, and what people did; {} is what stands there.
_PLAIN_WORDS = (
    (r"cannot start any token", "a text that begins with {} needs quotes"),
    (
        r"unknown escape character",
        r"\{} means nothing in double quotes: use single quotes, or write \\{}",
    ),
    (
        "mapping values are not allowed",
        "a second `: ` in one value, or a line that is indented too far: use quotes, or mend it",
    ),
    ("simple key", "the line above has no `: ` after its key, or belongs into a quoted text"),
    ("end of stream", "a quote that was opened in an earlier line is never closed"),
    ("flow (mapping|sequence)", "a bracket { or [ is never closed, or a comma is missing"),
    (
        "invalid Unicode character",
        "half a surrogate pair is not a character, nor is any above 10FFFF",
    ),
    ("block collection", "this line is indented unlike the items of the list above it"),
)
_IN_BLOCK = "block mapping"


def _divided(text: str, line: int, column: int) -> tuple[int, str, str]:
    """Return the line of a place (from 1), and what stands there before and after it."""
    lines = text.split("\n")
    if line >= len(lines):  # where the text ends without a line end
        return len(lines), lines[-1], ""
    return line + 1, lines[line][:column], lines[line][column:]


def _plainly(reason: str, before: str, rest: str) -> str:
    """Return a mistake in YAML in plain words; the parser's own for one without."""
    if "start any token" in reason and rest.startswith("\t"):
        return "a tab stands here: indent by spaces"
    if _IN_BLOCK in reason and before.strip():
        return "text after a closing quote (write a quote within quotes twice), or indented wrongly"
    if _IN_BLOCK in reason:
        return "this line is indented unlike the keys above it: begin them in one column"
    for pattern, words in _PLAIN_WORDS:
        if re.search(pattern, reason):
            return words.replace("{}", rest.lstrip("\\")[:1])
    return reason


def _not_yaml(source: str, line: int, reason: str) -> ContractInvalid:
    return ContractInvalid(source, [Problem(line, "", f"invalid YAML: {reason}")])


_NUMBER = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_NUMBER_STARTS = "-+.0123456789"
_IMPLICIT = (  # tag, what it looks like, the characters that it can begin with
    ("null", r"(?:~|null|Null|NULL|)", ("~", "n", "N", "")),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", tuple("tTfF")),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)", tuple(_NUMBER_STARTS)),
    ("float", rf"(?:{_NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))", tuple(_NUMBER_STARTS)),
)
_BY_START = {
    start: [(_TAG + tag, re.compile(form)) for tag, form, starts in _IMPLICIT if start in starts]
    for start in {start for _, _, starts in _IMPLICIT for start in starts}
}
_HALF = re.compile("[\ud800-\udfff]")


def _refusal(reason: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=reason, problem_mark=place.start_mark)


@dataclass(frozen=True)
class _Anchored:
    """A value with a name, the number of keys and values in it, and how deep it is nested."""

    node: Node
    nodes: int
    depth: int


class _Tree:
    """Builds the tree of a text from the parser's events, within a budget of keys and values.

    An alias stands for the tree of its anchor, and counts as often as it is there.
    """

    def __init__(self, text: str, problems: list[Problem], most: int) -> None:
        loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        self._events: Iterator[Any] = yaml.parse(text, Loader=loader)
        self._problems = problems
        self._most = most
        self._nodes = self._deepest = 0
        self._anchors: dict[str, _Anchored | None] = {}

    def root(self) -> Node | None:
        """Return the root of the one document, None without one."""
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), "", 1)
        next(self._events)  # the document's end
        another = next(self._events)
        if not isinstance(another, yaml.StreamEndEvent):
            raise _refusal("expected a single document, but found another document", another)
        return root

    def _node(self, event: Any, path: str, depth: int, line: int = 0) -> Node:
        """Return the node that an event begins."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth, line)
        self._count(event, 1, depth)
        line = line or event.start_mark.line + 1
        if event.anchor:
            return self._anchored(event, path, depth, line)
        return self._value(event, path, depth, line)

    def _anchored(self, event: Any, path: str, depth: int, line: int) -> Node:
        if event.anchor in self._anchors:
            raise _refusal(f"the anchor {event.anchor} is given twice", event)
        self._anchors[event.anchor] = None  # a value cannot hold itself
        before, outside = self._nodes - 1, self._deepest
        self._deepest = depth
        node = self._value(event, path, depth, line)
        self._anchors[event.anchor] = _Anchored(node, self._nodes - before, self._deepest - depth)
        self._deepest = max(outside, self._deepest)
        return node

    def _count(self, event: Any, nodes: int, depth: int) -> None:
        self._nodes += nodes
        self._deepest = max(self._deepest, depth)
        aliased = isinstance(event, yaml.AliasEvent)
        if depth > _MAX_DEPTH:
            deep = f"nested deeper than {_MAX_DEPTH}"
            raise _refusal(_UNFOLDS if aliased else deep, event)
        if self._nodes > self._most:
            many = f"more than {self._most:,} keys and values"
            raise _refusal(_UNFOLDS if aliased else many, event)

    def _alias(self, event: Any, depth: int, line: int) -> Node:
        if event.anchor not in self._anchors:
            raise _refusal(f"nothing above has the anchor {event.anchor}", event)
        held = self._anchors[event.anchor]
        if held is None:
            raise _refusal(_UNFOLDS, event)
        self._count(event, held.nodes, depth + held.depth)
        return replace(held.node, line=line) if line else held.node

    def _value(self, event: Any, path: str, depth: int, line: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Node(line, _scalar(event), event.value)
        is_map = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_map else "seq")):
            raise _refusal(f"the tag {event.tag} is not supported", event)
        return Node(line, self._mapping(path, depth) if is_map else self._items(path, depth))

    def _items(self, path: str, depth: int) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            nodes.append(self._node(event, f"{path}[{len(nodes)}]", depth + 1))
        return tuple(nodes)

    def _mapping(self, path: str, depth: int) -> Mapping[str, Node]:
        nodes: dict[str, Node] = {}
        while not isinstance(key := next(self._events), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise _refusal("a key must be a word", key)
            self._count(key, 1, depth + 1)
            mark: Any = key.start_mark
            line, field = mark.line + 1, f"{path}.{key.value}".lstrip(".")
            node = self._node(next(self._events), field, depth + 1, line)
            if key.value in nodes:
                reason = f"is given twice, first in line {nodes[key.value].line}"
                self._problems.append(Problem(line, field, reason))
            nodes.setdefault(key.value, node)
        return nodes


_UNFOLDS = "the aliases unfold to too much"
_NUMBERS = (_TAG + "int", _TAG + "float")
_SCALARS: dict[str, Callable[[str], Scalar]] = {
    _TAG + "null": lambda text: None,
    _TAG + "bool": lambda text: text.lower() == "true",
    _TAG + "int": lambda text: int(text, 0) if text[:2] in ("0o", "0x") else int(text),
    _TAG + "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    _TAG + "str": str,
}


def _scalar(event: Any) -> Scalar:
    tag, text = _tag(event), event.value
    if tag not in _SCALARS:
        raise _refusal(f"the tag {tag} is not supported", event)
    if _HALF.search(text):
        raise _refusal("half a surrogate pair is not a character", event)
    if tag in _NUMBERS and len(text) > _LONGEST_NUMBER:
        raise _refusal(f"a number of {len(text):,} characters", event)
    try:
        return _SCALARS[tag](text)
    except ValueError:
        raise _refusal(f"{text[:40]} is not a {tag.removeprefix(_TAG)}", event) from None


def _tag(event: Any) -> str:
    """Return the given tag, or that of a plain text by its form."""
    if event.tag not in (None, "!"):
        return str(event.tag)
    forms = _BY_START.get(event.value[:1], ()) if event.implicit[0] else ()
    return next((tag for tag, form in forms if form.fullmatch(event.value)), _TAG + "str")
