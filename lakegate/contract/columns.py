"""A table's columns, and the column type of each declaration."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

LOGICAL_TYPES = (
    *("string", "integer", "number", "boolean", "date", "timestamp", "time"),
    *("object", "array", "map", "vector"),
)
ITEM, KEY, VALUE = "[]", "{key}", "{value}"

_DEFAULTS = {
    "string": "string",
    "integer": "bigint",
    "number": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "time": "string",
}
BYTE, SHORT = (-128, 127), (-32768, 32767)
# Whole numbers that a column of the type int holds with many others.
_RANGES = {
    **dict.fromkeys(("tinyint", "byte"), BYTE),
    **dict.fromkeys(("smallint", "short", "int2", "int16", "smallserial"), SHORT),
    "uint8": (0, (1 << 8) - 1),
    "uint16": (0, (1 << 16) - 1),
}
_WIDER_RANGES = {"uint32": (0, (1 << 32) - 1), "uint64": (0, (1 << 64) - 1)}
JSON = ("json", "jsonb")
_WITH_LENGTH = (
    *("char", "bpchar", "nchar", "varchar", "nvarchar", "varchar2", "nvarchar2"),
    *("character", "character varying"),
)
_TEXTS = ("ntext", "tinytext", "mediumtext", "longtext", "citext", "inet")
# The names of Spark, Iceberg and other systems.
_PHYSICAL = {
    "boolean": "boolean",
    "bool": "boolean",
    **dict.fromkeys(("int", "integer", "int4", "int32", "serial", *_RANGES), "int"),
    "mediumint": "int",
    **dict.fromkeys(("bigint", "long", "int8", "int64", "bigserial", "uint32"), "bigint"),
    **dict.fromkeys(("float", "real", "float4", "float32", "float16"), "float"),
    **dict.fromkeys(("double", "float8", "float64", "double precision"), "double"),
    **dict.fromkeys(("decimal", "numeric", "number", "bignumeric", "uint64"), "decimal"),
    **dict.fromkeys(("string", "str", "text", "clob", "nclob", "uuid", "xml", *JSON), "string"),
    **dict.fromkeys((*_WITH_LENGTH, *_TEXTS), "string"),
    "time": "string",
    **dict.fromkeys(("date", "date32", "date64"), "date"),
    **dict.fromkeys(("timestamp", "timestamp_millis", "timestamp_micros"), "timestamp"),
    "datetimeoffset": "timestamp",
    **dict.fromkeys(("timestamptz", "timestamp_tz", "timestamp with time zone"), "timestamp"),
    **dict.fromkeys(("timestampltz", "timestamp_ltz"), "timestamp"),
    "timestamp with local time zone": "timestamp",
    **dict.fromkeys(("timestampntz", "timestamp_ntz", "datetime", "datetime2"), "timestamp_ntz"),
    "timestamp without time zone": "timestamp_ntz",
    **dict.fromkeys((f"timestamp_{unit}" for unit in ("s", "ms", "us", "ns")), "timestamp_ntz"),
    "smalldatetime": "timestamp_ntz",
    **dict.fromkeys(("binary", "varbinary", "bytes", "bytea", "blob", "raw"), "binary"),
}
_FAMILIES = {
    "string": ("string", "binary"),
    "integer": ("int", "bigint", "decimal"),
    "number": ("int", "bigint", "float", "double", "decimal"),
    "boolean": ("boolean",),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "time": ("string",),
}
_DECLARATION = re.compile(
    r"([a-z][a-z0-9_ ]*[a-z0-9])\s*"
    r"(?:[(\[]\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?[)\]])?( with[a-z ]+)?"
)
_LONGEST = 100  # characters of a declaration
_MOST_DIGITS = 38
OPEN_SCALE = 9  # digits after the point of a decimal without digits, as of BigQuery's NUMERIC
_FLOATS = ("float", "double")  # in which digits decide nothing
_WITH_DIGITS = ("timestamp", "timestamp_ntz")  # of a second's fraction: columns have six
_WITH_WIDTH = ("int", "bigint")  # of MySQL's displays, as in int(11)
_AMBIGUOUS = ("byteint", "datetime64")  # which other systems understand in different ways


@dataclass(frozen=True)
class Column:
    """One column of the table and of the file, or a nested one.

    `type` is the Spark SQL type, which is also Iceberg's: boolean, int, bigint, float, double,
    decimal(p,s), string, date, timestamp (an instant), timestamp_ntz (local time without a zone),
    binary, struct<…>, array<…> or map<…>. `sensitive` values are confidential: neither reports nor
    alerts show them. `path` leads to a nested column, such as ("lines", ITEM, "sku"), whose `name`
    is then `lines[].sku`; for a column of the table it is only the name. `fields` are the names of
    a struct's fields. In a file of text cells, `written` is the pattern of its dates and times
    (Java's DateTimeFormatter), "" for ISO 8601, and `zone` is the time zone of timestamps without
    one, "" for UTC. `line` is its place in the contract's text.
    """

    name: str
    type: str
    logical_type: str
    required: bool = False
    sensitive: bool = False
    description: str = ""
    path: tuple[str, ...] = ()
    written: str = ""
    zone: str = ""
    fields: tuple[str, ...] = ()
    line: int = field(default=0, compare=False, repr=False)

    @property
    def steps(self) -> tuple[str, ...]:
        """Return the steps from a row to the column."""
        return self.path or (self.name,)

    @property
    def top(self) -> str:
        """Return the name of the table's column that this one is, or lies within."""
        return self.steps[0]

    @property
    def is_declared(self) -> bool:
        """Return if the contract names it; if not, an earlier file added it to the table."""
        return bool(self.logical_type)

    @property
    def kind(self) -> str:
        """Return the type without its digits, or `time`, for the choice of literals and rules."""
        plain = self.type.partition("(")[0].partition("<")[0]
        return "time" if self.logical_type == "time" else plain

    @property
    def is_fractional(self) -> bool:
        """Return if its numbers may have digits after a decimal separator."""
        return self.kind in ("float", "double", "decimal")


def quoted(name: str) -> str:
    """Return a name quoted for Spark SQL, with any characters in it."""
    return "`" + name.replace("`", "``") + "`"


def folded(name: str) -> str:
    """Return a name in the one case in which Spark compares names, each character alone.

    Spark takes more names for one than `str.lower` does, such as `id` and `İd`.
    """
    upper = (big if len(big := each.upper()) == 1 else each for each in name)
    return "".join(each.lower()[0] for each in upper)


def default_type(logical: str) -> str:
    """Return the column type of a logical type without a physical one."""
    return _DEFAULTS[logical]


def declared_type(physical: str, logical: str) -> tuple[str, int | None]:
    """Return the column type of a physical type, and the length in characters that it allows.

    What only another system keeps so says nothing: the logical type decides. Raises ValueError,
    with a sentence for people, for what seems misspelt, and for a type of another logical type.
    """
    parsed = _parsed(physical)
    name = _name(parsed) if parsed else physical
    base = _PHYSICAL.get(name, "")
    if not parsed or says_nothing(physical, logical):
        _refuse_like_known(physical)
        return _DEFAULTS[logical], None
    if base not in _FAMILIES[logical] or (name == "time" and logical != "time"):
        raise ValueError(f"{physical} is not a type for a column of logicalType {logical}")
    if base == "decimal":
        return _decimal(physical, parsed[2], parsed[3], whole=logical == "integer"), None
    says_little = (base in (*_WITH_DIGITS, *_WITH_WIDTH) or name == "time") and parsed[3] is None
    if parsed[2] is None or base in _FLOATS or says_little:
        return base, None
    if name not in _WITH_LENGTH or parsed[3] is not None:
        raise ValueError(f"{physical}: {name} takes no such numbers here")
    return base, int(parsed[2])


def says_nothing(physical: str, logical: str) -> bool:
    """Return whether a type is unknown, or that of dates and times as numbers or text."""
    if logical in ("date", "timestamp") and logical_of(physical) in ("string", "integer"):
        return _base(physical) != "binary"
    return not is_known(physical)


def logical_of(physical: str) -> str:
    """Return the logical type of a physical one: `number` of decimal(12,2); "" if unknown."""
    base = _base(physical)
    if base == "decimal":
        return "number"
    if (parsed := _parsed(physical)) and parsed[1] == "time":
        return "time"
    families = (logical for logical, family in _FAMILIES.items() if base in family)
    return next(families, "")


def _parsed(physical: str) -> re.Match[str] | None:
    text = physical.strip().lower()
    return _DECLARATION.fullmatch(text) if len(text) <= _LONGEST else None


def _name(declaration: re.Match[str]) -> str:
    """Return the type's name: `timestamp with time zone` of `timestamp(6) with time zone`."""
    return declaration[1] + (declaration[4] or "")


def whole_range(physical: str) -> tuple[int | None, int | None]:
    """Return the least and greatest value of a physical type whose column type holds more."""
    parsed = _parsed(physical)
    ranges: Mapping[str, tuple[int, int]] = _RANGES | _WIDER_RANGES
    return ranges.get(_name(parsed), (None, None)) if parsed else (None, None)


def has_open_digits(physical: str) -> bool:
    """Return whether a physical type is a decimal that does not say how many digits it has."""
    return _PHYSICAL.get(physical.strip().lower()) == "decimal"


def is_known(physical: str) -> bool:
    """Return whether a physical type says something about a column."""
    return _base(physical) is not None


def _base(physical: str) -> str | None:
    """Return the column type of a known physical type, without its digits."""
    parsed = _parsed(physical)
    return _PHYSICAL.get(_name(parsed)) if parsed else None


def _refuse_like_known(physical: str) -> None:
    """Raise ValueError for an unknown type that differs from a known one by a few letters."""
    name = re.split(r"[(\[]", physical)[0].lower()
    if name not in (*_PHYSICAL, *_AMBIGUOUS) and (
        near := difflib.get_close_matches(name, _PHYSICAL, 1, 0.7)
    ):
        raise ValueError(f"{physical} is no type that Lakegate knows (did you mean {near[0]}?)")


def _decimal(physical: str, precision: str | None, scale: str | None, *, whole: bool) -> str:
    if precision is None:
        return f"decimal({_MOST_DIGITS},{0 if whole else OPEN_SCALE})"
    digits, fraction = int(precision), int(scale or 0)
    if not 1 <= digits <= _MOST_DIGITS or fraction > digits:
        raise ValueError(f"{physical}: a decimal has 1 to 38 digits, and no more after the point")
    if whole and fraction:
        raise ValueError(f"{physical} has digits after the point, but logicalType is integer")
    return f"decimal({digits},{fraction})"
