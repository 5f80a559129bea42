"""Which landed files a contract is for, and how they are to be read."""

from collections.abc import Callable, Mapping

from lakegate.contract_fields import Field
from lakegate.contract_yaml import Node, suggestion

FORMATS = ("parquet", "csv", "json")

_SETTINGS = ("landingPrefix", "format", "options", "allowSamples")
_ENCODINGS = ("UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE")
_CSV_DEFAULTS = {"header": "true", "delimiter": ",", "quote": '"', "escape": '"'}
_SURELY = 0.85


def read_settings(root: Field, table: Field) -> Field:
    """Lakegate's own `customProperties`, of the contract and of its schema object, as a mapping.

    Properties of other tools are left alone, unless one looks like a slip of the pen.
    """
    found: dict[str, Node] = {}
    for place in (root.at("customProperties"), table.at("customProperties")):
        for item in place.items():
            item.limit_keys(("property", "value", "id", "description", "vendor"))
            name = item.required_text("property")
            if name in found:
                item.refuse(f"{name} is given twice, first in line {found[name].line}")
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
    """Spark's reader options for the file, defaults included, by Spark's names."""
    readers = _readers(format_)
    options = settings.at("options")
    if options.given:
        options.limit_keys(readers)
    defaults = _CSV_DEFAULTS if format_ == "csv" else {}
    encoding = {} if format_ == "parquet" else {"encoding": "UTF-8"}
    given = {key: read(options, key) for key, read in readers.items() if options.has(key)}
    merged = {**defaults, **encoding, **given}
    if format_ == "csv" and merged["delimiter"] in (merged["quote"], merged["escape"]):
        options.refuse("is the quote or the escape, too", "delimiter")
    return merged


def _readers(format_: str) -> Mapping[str, Callable[[Field, str], str]]:
    text: Mapping[str, Callable[[Field, str], str]] = {
        "encoding": lambda options, key: options.choice(key, _ENCODINGS, default="UTF-8"),
        "dateFormat": Field.required_text,
        "timestampFormat": Field.required_text,
    }
    csv: Mapping[str, Callable[[Field, str], str]] = {
        "header": lambda options, key: str(options.flag(key)).lower(),
        "delimiter": Field.required_text,
        "quote": _character,
        "escape": _character,
        "nullValue": Field.text,
    }
    return {"parquet": {}, "csv": {**csv, **text}, "json": text}.get(format_, {})


def _character(options: Field, key: str) -> str:
    text = options.text(key)
    if len(text) > 1:
        options.refuse("must be one character, or empty for none", key)
    return text
