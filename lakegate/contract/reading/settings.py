"""Read which landed files a contract covers, and how to read them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

from lakegate.contract.reading.options import custom_properties
from lakegate.contract.text.fields import Field
from lakegate.job.landing import BATCHES

FORMATS = ("parquet", "csv", "tsv", "json", "avro", "orc")
SCHEMA_FORMATS = ("parquet", "avro", "orc")
FLAT_FORMATS = ("csv", "tsv")

# Of each setting's choices, the first is what holds without one.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "format": FORMATS,
    "onDuplicate": ("publish", "hold"),
    "onNewVersion": ("add", "replace"),
    "isolation": ("shared", "own"),
    "write": ("auto", "spark"),
    "compaction": ("scheduled", "never"),
    "extraColumns": ("fail", "drop", "add"),
    "missingColumns": ("fail", "null"),
}
SETTINGS = (
    *CHOICES,
    *("landingPrefix", "options", "allowSamples", "writeMode", "latestBy", "deleteWhen", "batches"),
    *("quarantine", "transform", "sortOrder", "tableProperties", "provenance", "droppedColumns"),
)
DECIMAL_SEPARATOR = "decimalSeparator"
ENCODINGS = ("UTF-8", "ISO-8859-1", "WINDOWS-1252", "UTF-16", "UTF-16BE", "UTF-16LE")
_JSON_DEFAULTS = {"maxCompressionRatio": "200"}
_CSV_DEFAULTS = {
    **_JSON_DEFAULTS,
    "header": "true",
    "delimiter": ",",
    "quote": '"',
    "escape": '"',  # a quote within quotes is written twice: RFC 4180, not Spark's default
    "encoding": "UTF-8",
}
_DEFAULTS = {
    "csv": _CSV_DEFAULTS,
    "tsv": {**_CSV_DEFAULTS, "delimiter": "\t"},
    "json": _JSON_DEFAULTS,
}


def chosen(settings: Field, key: str) -> str:
    """Return the choice of a setting."""
    return settings.choice(key, CHOICES[key], default=CHOICES[key][0])


def read_settings(root: Field, table: Field) -> Field:
    """Return Lakegate's `customProperties`, of the contract and its schema object, as a mapping.

    Properties of other tools are ignored, unless one looks like a typing error.
    """
    return custom_properties([root, table], SETTINGS)


@dataclass(frozen=True)
class Quarantine:
    """The limits of the rows of a file that may be quarantined instead of rejecting the file.

    At most `max_rows` and at most `max_percent`, if given; with `unreadable`, also rows with cells
    that cannot be parsed.
    """

    max_rows: int | None = None
    max_percent: Decimal | None = None
    unreadable: bool = False

    def allows(self, kept_out: int, rows: int) -> bool:
        """Return if so many of a file's rows may be quarantined."""
        few = self.max_rows is None or kept_out <= self.max_rows
        return few and (self.max_percent is None or 100 * kept_out <= self.max_percent * rows)

    @property
    def wording(self) -> str:
        """Return the limits in words: `at most 100 rows and 5 % of rows`."""
        rows = f"{self.max_rows:,} rows" if self.max_rows is not None else ""
        percent = f"{self.max_percent:f} % of rows" if self.max_percent is not None else ""
        return f"at most {' and '.join(filter(None, (rows, percent)))}"


def read_quarantine(settings: Field) -> Quarantine | None:
    """Return the limits of the quarantine; None without a quarantine."""
    if not settings.has("quarantine"):
        return None
    given = settings.at("quarantine")
    given.limit_keys(("maxRows", "maxPercent", "unreadable"))
    if not given.has("maxRows") and not given.has("maxPercent"):
        given.refuse("needs a limit: maxRows, maxPercent or both")
    reason, share = "must be a number above 0, up to 100", given.at("maxPercent")
    percent = share.number(lambda value: 0 < value <= 100, reason) if share.given else None
    return Quarantine(given.count("maxRows"), percent, given.flag("unreadable"))


def landing_prefix(settings: Field, table: str) -> str:
    """Return the prefix of the contract's keys: by default `namespace/table/`."""
    given = settings.has("landingPrefix")
    own = table.replace(".", "/") + "/" if table else ""
    prefix = settings.required_text("landingPrefix") if given else own
    if prefix.startswith(BATCHES):
        reason = f"cannot begin with {BATCHES}, where files land only with a manifest"
        settings.refuse(f"{reason}: give the table's files another place", "landingPrefix")
    if prefix.startswith("/") or "://" in prefix:
        settings.refuse(
            "is the beginning of a key in the landing bucket, such as nyc/flights/: it has no "
            "bucket in it and no slash before it",
            "landingPrefix",
        )
    return prefix


def batch_prefixes(settings: Field) -> tuple[str, ...]:
    """Return the prefixes of the manifests that may bring the table's files; none by default."""
    given = settings.at("batches")
    if given.node.value == "allowed":
        return (BATCHES,)
    if given.given and not isinstance(given.node.value, tuple):
        given.refuse(f"must be allowed, or a list of prefixes, such as [{BATCHES}shop-]")
        return ()
    return tuple(_batch_prefix(item) for item in given.items())


def _batch_prefix(item: Field) -> str:
    prefix = item.node.value
    if not isinstance(prefix, str) or not prefix.startswith(BATCHES):
        item.refuse(f"is no prefix of a manifest: it begins with {BATCHES}, as in {BATCHES}shop-")
    return str(prefix)


def read_options(settings: Field, format_: str) -> dict[str, str]:
    """Return the reading options of a text format, defaults included; most by Spark's names.

    Parquet, Avro and ORC describe themselves. JSON is always UTF-8.
    """
    readers = _READERS.get(format_, {})
    options = settings.at("options")
    if options.given:
        options.limit_keys(readers, refused={"sep": "is called delimiter here"})
    given = {key: read(options, key) for key, read in readers.items() if options.has(key)}
    merged = {**_DEFAULTS.get(format_, {}), **given}
    if merged.get("delimiter", ",") in (merged.get("quote"), merged.get("escape")):
        options.refuse("is the quote or the escape, too", "delimiter")
    return merged


def has_decimal_comma(options: Mapping[str, str]) -> bool:
    """Return if a text format's numbers are written as 12,5."""
    return options.get(DECIMAL_SEPARATOR) == ","


def _character(options: Field, key: str) -> str:
    text = options.text(key)
    text = "\t" if text == "\\t" else text
    if len(text) != 1 or text in "\r\n\0" or text > "\uffff":
        options.refuse("must be one character of the basic plane, and no end of line", key)
    return text


def _true_or_false(options: Field, key: str) -> str:
    given = options.at(key).node.value
    return given if given in ("true", "false") else str(options.flag(key)).lower()


def _encoding(options: Field, key: str) -> str:
    given = options.text(key).upper()
    if given not in ENCODINGS:
        options.refuse(f"unknown {key} {given!r}; use one of {', '.join(ENCODINGS)}", key)
    return given


def _separator(options: Field, key: str) -> str:
    given = options.text(key)
    if given not in (",", "."):
        options.refuse('must be "," as in 12,5 or "." as in 12.5', key)
    return given


def _ratio(options: Field, key: str) -> str:
    ratio = options.count(key)
    if ratio == 0:
        options.refuse("must be at least 1", key)
    return str(ratio or 1)


JSON_OPTIONS: Mapping[str, Callable[[Field, str], str]] = {"maxCompressionRatio": _ratio}
CSV_OPTIONS: Mapping[str, Callable[[Field, str], str]] = {
    **JSON_OPTIONS,
    "header": _true_or_false,
    "delimiter": _character,
    "quote": _character,
    "escape": _character,
    "nullValue": Field.text,
    "emptyValue": Field.text,
    "encoding": _encoding,
    DECIMAL_SEPARATOR: _separator,
}
_READERS = {"csv": CSV_OPTIONS, "tsv": CSV_OPTIONS, "json": JSON_OPTIONS}


_ISO = {"date": "yyyy-MM-dd", "timestamp": "yyyy-MM-dd'T'HH:mm:ss", "time": "HH:mm:ss"}
# DateTimeFormatter's letters that Spark parses, and whose meaning depends on no locale. Of names it
# reads those of months in English, in any case: Spark's locale for patterns is always US.
_KNOWN = re.compile(r"y{1,6}|M{3}(?!M)|([MdHhms])\1?(?!\1)|S{1,6}(?!S)|a|[XxZ]{1,3}")
_QUOTED = re.compile(r"'[^']*'")
_PLAIN = re.compile(r"[^A-Za-z\[\]{}#']")
_PARTS = (_KNOWN, _QUOTED, _PLAIN)
_NEEDED = {"date": "yMd", "timestamp": "yMd"}
_LOCAL = "timestamp_ntz"
_NO_ZONE = f"a {_LOCAL} is a local time in no zone: leave it out, or declare timezone: true"
# Patterns of ISO 8601, of which cells may be written in any way that the reader of it takes.
_INSTANT = re.compile(
    r"yyyy-MM-dd'T'HH:mm(?:\[?:ss\]?(?:\[?\.S+\]*)?)?(?:\[?(?:'[^']*'|[XxZOVz])\]?)*"
)


def read_pattern(options: Field, logical: str, type_: str) -> str:
    """Return the pattern of a column's dates or timestamps; "" for ISO 8601.

    A pattern is one of Java's DateTimeFormatter, as in the standard (ODCS, logicalTypeOptions).
    """
    if logical not in _ISO:
        return ""
    given = options.text("format")
    if given in ("", _ISO[logical]) or (logical == "timestamp" and _INSTANT.fullmatch(given)):
        return ""
    if logical == "time":
        options.refuse(f"times are read as {_ISO[logical]} alone", "format")
        return ""
    if strange := _strange(given):
        reason = "such as dd/MM/yyyy HH:mm or ddMMMyyyy, is made of y M d H h m s S a X and signs"
        options.refuse(f"{strange!r} is not supported in a pattern: one, {reason}", "format")
    elif missing := [letter for letter in _NEEDED[logical] if letter not in given]:
        options.refuse(f"a {logical} needs {', '.join(missing)} in its pattern", "format")
    elif "h" in (letters := _QUOTED.sub("", given)) and "a" not in letters:
        reason = "h is the hour before or after noon, and needs a (AM or PM); H is that of a day"
        options.refuse(reason, "format")
    elif type_ == _LOCAL and (zones := set("XxZ").intersection(letters)):
        options.refuse(f"{min(zones)} is a zone, and {_NO_ZONE}", "format")
    return given


def read_zone(options: Field, logical: str, type_: str) -> str:
    """Return the time zone of a column's timestamps without one; "" for UTC."""
    name = options.text("defaultTimezone") if logical in _ISO else ""
    if name in ("", "UTC", "Etc/UTC"):
        return ""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        options.refuse(f"{name!r} is not a time zone, such as Europe/Berlin", "defaultTimezone")
        return ""
    if logical != "timestamp":
        options.refuse(f"belongs to timestamps: a {logical} is in no time zone", "defaultTimezone")
    elif type_ == _LOCAL:
        options.refuse(f"is a zone, and {_NO_ZONE}", "defaultTimezone")
    return name


def _strange(pattern: str) -> str:
    """Return the first unsupported part of a pattern; "" if there is none."""
    at = 0
    while at < len(pattern):
        match = next(filter(None, (each.match(pattern, at) for each in _PARTS)), None)
        if not match:
            return pattern[at:]
        at = match.end()
    return ""
