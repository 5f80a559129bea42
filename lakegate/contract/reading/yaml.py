"""Read a contract's text as a tree of nodes that remember their lines, and its problems.

Scalars are read as YAML 1.2 reads them: `NO` and `2013-01-01` are text and `010` is ten, unlike in
YAML 1.1. Notations that would silently change the meaning are refused: keys given twice, merge
keys, unknown tags, several documents, and aliases that unfold without end.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import yaml

from lakegate.contract.literals import Scalar
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits

_MAX_DEPTH = 50
_LONGEST_NUMBER = 400  # characters: as many as a float has at most, written out
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Problem:
    """A problem in a contract: the line (from 1), the field's path, and the reason."""

    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field + ': ' if self.field else ''}{self.reason}"


class ContractInvalid(Permanent):
    """A contract is refused; `problems` are all of them, in the order of their lines."""

    def __init__(self, source: str, problems: Collection[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(set(problems), key=lambda p: (p.line, p.field, p.reason)))
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__("CONTRACT_INVALID", f"{source} is refused as a contract:{lines}")


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


def suggestion(word: str, known: Collection[str], nearness: float = 0.7) -> str:
    """Return ` (did you mean …?)` for a known word nearby (1 is the same), else ""."""
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=nearness)
    return f" (did you mean {lowered[near[0]]}?)" if near else ""


def load(text: str, source: str, problems: list[Problem], limits: Limits = DEFAULTS) -> Node:
    """Return the tree of a YAML text. Keys given twice become `problems`; the first one stays.

    Raises ContractInvalid when there is no tree: invalid YAML, empty, too large or too deep.
    """
    if len(text) > limits.largest_contract:
        reason = f"the text is longer than {limits.largest_contract:,} characters"
        raise ContractInvalid(source, [Problem(1, "", reason)])
    try:
        root = _Loader(text, limits.most_contract_values).get_single_node()
        if root is None:
            raise ContractInvalid(source, [Problem(1, "", "the text is empty")])
        return _Tree(problems, limits.most_contract_values).node(root, "", 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(filter(None, (error.context, error.problem)))
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise _not_yaml(source, line, f"{_plainly(reason)} (column {column})") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _not_yaml(source, line, f"the character U+{error.character:04X}") from error
    except (ValueError, OverflowError) as error:  # an escape that is no character: "\UFFFFFFFF"
        raise _not_yaml(source, 1, str(error)) from error


# PyYAML's words for a mistake, and what people did.
_PLAIN_WORDS = (
    (r"character '\\t'", "a tab stands here: indent by spaces"),
    (
        r"unknown escape character '(.)'",
        r"\\\1 means nothing in double quotes: use single quotes, or write \\\\\1",
    ),
    (r"found character '(.)'", r"a text that begins with \1 needs quotes"),
    (
        "mapping values are not allowed",
        "a second `: ` in one value, or a line that is indented too far: use quotes, or mend it",
    ),
    ("simple key", "the line above has no `: ` after its key, or belongs into a quoted text"),
    ("end of stream", "a quote that was opened in an earlier line is never closed"),
    ("flow (mapping|sequence)", "a bracket { or [ is never closed, or a comma is missing"),
    ("block collection", "this line is indented unlike the items of the list above it"),
    (
        "found '<scalar>'",
        "text after a closing quote (write a quote within quotes twice), or indented wrongly",
    ),
    ("block mapping", "this line is indented unlike the keys above it: begin them in one column"),
)


def _plainly(reason: str) -> str:
    """Return a mistake in YAML in plain words; PyYAML's own for one without."""
    for pattern, words in _PLAIN_WORDS:
        if found := re.search(pattern, reason):
            return found.expand(words)
    return reason


def _not_yaml(source: str, line: int, reason: str) -> ContractInvalid:
    return ContractInvalid(source, [Problem(line, "", f"invalid YAML: {reason}")])


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with YAML 1.2's implicit types and limits of depth and of nodes."""

    def __init__(self, text: str, most: int) -> None:
        super().__init__(text)
        self.depth = self.nodes = 0
        self.most = most

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.nodes += 1
        if parent and self.depth > _MAX_DEPTH:
            raise _refusal(f"nested deeper than {_MAX_DEPTH}", parent)
        if parent and self.nodes > self.most:
            raise _refusal(f"more than {self.most:,} keys and values", parent)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_NUMBER = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_NUMBER_STARTS = "-+.0123456789"
_IMPLICIT = (  # tag, what it looks like, the characters that it can begin with
    ("null", r"(?:~|null|Null|NULL|)$", ("~", "n", "N", "")),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", _NUMBER_STARTS),
    ("float", rf"(?:{_NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", _NUMBER_STARTS),
)
_Loader.yaml_implicit_resolvers = {}
for _tag, _regexp, _starts in _IMPLICIT:
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(_regexp), list(_starts))


def _refusal(reason: str, place: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=reason, problem_mark=place.start_mark)


class _Tree:
    """Turns PyYAML's nodes into ours, each alias unfolded, within a budget of nodes."""

    def __init__(self, problems: list[Problem], most: int) -> None:
        self.problems = problems
        self.nodes = 0
        self.most = most

    def node(self, raw: yaml.Node, path: str, depth: int, line: int = 0) -> Node:
        self.nodes += 1
        if self.nodes > self.most or depth > _MAX_DEPTH:
            raise _refusal("the aliases unfold to too much", raw)
        line = line or raw.start_mark.line + 1
        if isinstance(raw, yaml.MappingNode) and raw.tag == _TAG + "map":
            return Node(line, self._mapping(raw, path, depth))
        if isinstance(raw, yaml.SequenceNode) and raw.tag == _TAG + "seq":
            items = (self.node(n, f"{path}[{i}]", depth + 1) for i, n in enumerate(raw.value))
            return Node(line, tuple(items))
        if isinstance(raw, yaml.ScalarNode) and raw.tag in _SCALARS:
            return Node(line, _scalar(raw), raw.value)
        raise _refusal(f"the tag {raw.tag} is not supported", raw)

    def _mapping(self, raw: yaml.MappingNode, path: str, depth: int) -> Mapping[str, Node]:
        found: dict[str, Node] = {}
        for key, value in raw.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refusal("a key must be a word", key)
            line, field = key.start_mark.line + 1, f"{path}.{key.value}".lstrip(".")
            if key.value in found:
                reason = f"is given twice, first in line {found[key.value].line}"
                self.problems.append(Problem(line, field, reason))
            else:
                found[key.value] = self.node(value, field, depth + 1, line)
        return found


_NUMBERS = (_TAG + "int", _TAG + "float")
_SCALARS: dict[str, Callable[[str], Scalar]] = {
    _TAG + "null": lambda text: None,
    _TAG + "bool": lambda text: text.lower() == "true",
    _TAG + "int": lambda text: int(text, 0) if text[:2] in ("0o", "0x") else int(text),
    _TAG + "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    _TAG + "str": str,
}


def _scalar(raw: yaml.ScalarNode) -> Scalar:
    if any("\ud800" <= char <= "\udfff" for char in raw.value):
        raise _refusal("half a surrogate pair is not a character", raw)
    if raw.tag in _NUMBERS and len(raw.value) > _LONGEST_NUMBER:
        raise _refusal(f"a number of {len(raw.value):,} characters", raw)
    try:
        return _SCALARS[raw.tag](raw.value)
    except ValueError:
        raise _refusal(f"{raw.value[:40]} is not a {raw.tag.removeprefix(_TAG)}", raw) from None
