"""Which landed files a contract is for, and how they are to be read."""

from collections.abc import Callable, Mapping

from lakegate.contract_fields import Field
from lakegate.contract_yaml import Node, suggestion

FORMATS = ("parquet", "csv", "json")

ON_DUPLICATE = ("publish", "hold")
ON_NEW_VERSION = ("add", "replace")

_SETTINGS = (
    "landingPrefix",
    "format",
    "options",
    "allowSamples",
    "onDuplicate",
    "onNewVersion",
)
_ENCODINGS = ("UTF-8", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE")
_CSV_DEFAULTS = {
    "header": "true",
    "delimiter": ",",
    "quote": '"',
    "escape": '"',  # a quote within quotes is written twice: RFC 4180, not Spark's default
    "encoding": "UTF-8",
}
_SURELY = 0.85


def read_settings(root: Field, table: Field) -> Field:
    """Lakegate's own `customProperties`, of the contract and of its schema object, as a mapping.

    Properties of other tools are left alone, unless one looks like a slip of the pen.
    """
    found: dict[str, Node] = {}
    for place in (root.at("customProperties"), table.at("customProperties")):
        for item in place.items():
            item.limit_keys(("property",), ("value", "id", "description", "vendor"))
            name = item.required_text("property")
            if name in found:
                item.refuse(f"{name} is given twice, first in line {found[name].line}")
            elif name in _SETTINGS and not item.has("value"):
                item.refuse("is missing, or null", "value")
            elif name in _SETTINGS:
                found[name] = item.at("value").node
            elif near := suggestion(name, _SETTINGS, _SURELY):
                item.refuse(f"{name!r} is no setting of Lakegate's{near}", "property")
    return Field(Node(root.node.line, found), "customProperties", root.problems)


def landing_prefix(settings: Field, table: str) -> str:
    """The beginning of the keys that belong to the contract: by default `namespace/table/`."""
    if not settings.has("landingPrefix"):
        return table.replace(".", "/") + "/"
    prefix = settings.required_text("landingPrefix")
    if prefix.startswith("/") or "://" in prefix:
        settings.refuse(
            "is the beginning of a key in the landing bucket, such as nyc/flights/: it has no "
            "bucket in it and no slash before it",
            "landingPrefix",
        )
    return prefix


def read_options(settings: Field, format_: str) -> dict[str, str]:
    """Spark's reader options for the file, defaults included, by Spark's names.

    Only CSV has any: parquet describes itself, and JSON is always UTF-8.
    """
    readers = _CSV if format_ == "csv" else {}
    options = settings.at("options")
    if options.given:
        options.limit_keys(readers, refused={"sep": "is called delimiter here"})
    given = {key: read(options, key) for key, read in readers.items() if options.has(key)}
    merged = {**(_CSV_DEFAULTS if format_ == "csv" else {}), **given}
    if merged.get("delimiter", ",") in (merged.get("quote"), merged.get("escape")):
        options.refuse("is the quote or the escape, too", "delimiter")
    return merged


def _character(options: Field, key: str) -> str:
    text = options.text(key)
    text = "\t" if text == "\\t" else text
    if len(text) != 1 or text in "\r\n":
        options.refuse("must be one character, and no end of line", key)
    return text


def _true_or_false(options: Field, key: str) -> str:
    given = options.at(key).node.value
    return given if given in ("true", "false") else str(options.flag(key)).lower()


def _encoding(options: Field, key: str) -> str:
    given = options.text(key).upper()
    if given not in _ENCODINGS:
        options.refuse(f"{given!r} is none of {', '.join(_ENCODINGS)}", key)
    return given


_CSV: Mapping[str, Callable[[Field, str], str]] = {
    "header": _true_or_false,
    "delimiter": _character,
    "quote": _character,
    "escape": _character,
    "nullValue": Field.text,
    "encoding": _encoding,
}
