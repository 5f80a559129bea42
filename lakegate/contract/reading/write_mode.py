"""Read how the rows of a file enter the table: added, merged by key, or in place of partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakegate.contract.checks import Check, Metric
from lakegate.contract.columns import Column
from lakegate.contract.reading.literals import literal
from lakegate.contract.reading.partitions import Partition
from lakegate.contract.reading.properties import Property
from lakegate.contract.text.fields import Field

APPEND, UPSERT, OVERWRITE = "append", "upsert", "overwrite"
WRITE_MODES = (APPEND, UPSERT, OVERWRITE)
_MODE, _LATEST, _DELETE = "writeMode", "latestBy", "deleteWhen"
_ORDERED = ("int", "bigint", "decimal", "string", "time", "date", "timestamp", "timestamp_ntz")
_KEYS = (*_ORDERED, "boolean")  # no floats: two that look alike may differ
_FLAGS = ("int", "bigint", "decimal", "string", "boolean")


@dataclass(frozen=True)
class WriteMode:
    """The way of a file's rows into the table: `append`, `upsert` or `overwrite`.

    An upsert puts each row in the place of the one with the same `key`. Of several rows with one
    key the one with the greatest value of `latest_by` stays; "" for the order in which files
    landed. A row with the value `delete_value` (a literal) in `delete_column` removes its key.
    """

    name: str = APPEND
    key: tuple[str, ...] = ()
    latest_by: str = ""
    delete_column: str = ""
    delete_value: str = ""

    def __bool__(self) -> bool:
        """Return if a file may remove rows of others."""
        return self.name != APPEND

    @property
    def merges(self) -> bool:
        """Return if rows are put in the place of those with the same key."""
        return self.name == UPSERT

    @property
    def overwrites(self) -> bool:
        """Return if rows are put in the place of the partitions that they are in."""
        return self.name == OVERWRITE

    @property
    def follows_landing(self) -> bool:
        """Return if it matters in which order files are published."""
        return bool(self) and not self.latest_by

    def of_table(self, check: Check) -> Check:
        """Return a check as all rows of the table must pass it.

        A file may have a key for each value of `latest_by`; the table has it once.
        """
        in_file = (*self.key, self.latest_by)
        if not self.latest_by or (check.metric, check.columns) != (Metric.DUPLICATE, in_file):
            return check
        once = replace(check, columns=self.key)
        return replace(once, description=once.measure)


def read_write_mode(
    settings: Field, properties: Sequence[Property], partitions: Sequence[Partition]
) -> WriteMode:
    """Return how the rows of a file enter a table with these partitions."""
    mode = settings.choice(_MODE, WRITE_MODES, default=APPEND)
    if mode == UPSERT:
        columns = {entry.column.name: entry.column for entry in properties}
        flag = _flag(settings.at(_DELETE), columns)
        return WriteMode(mode, _key(settings, properties), _latest(settings, columns), *flag)
    for name in (_LATEST, _DELETE):
        if settings.has(name):
            settings.refuse(f"belongs to {_MODE}: {UPSERT}", name)
    if mode == OVERWRITE:
        _check_partitions(settings, partitions)
    return WriteMode(mode)


def _key(settings: Field, properties: Sequence[Property]) -> tuple[str, ...]:
    """Return the columns of the primary key, in the contract's order."""
    keys = [entry.column for entry in properties if entry.field.flag("primaryKey")]
    if not keys:
        reason = "needs a key: give primaryKey: true to the columns that identify a row"
        settings.refuse(f"{UPSERT} {reason}", _MODE)
    for column in keys:
        if column.kind not in _KEYS:
            reason = f"{column.type} cannot be compared exactly, so it is no key of an {UPSERT}"
            settings.refuse(f"{column.name}: {reason}", _MODE)
    return tuple(column.name for column in keys)


def _latest(settings: Field, columns: Mapping[str, Column]) -> str:
    """Return the column that decides between rows of one key, "" for none."""
    if not settings.has(_LATEST):
        return ""
    column = _column(settings, _LATEST, columns, _ORDERED, "has no order to go by")
    if column and not column.required:
        settings.refuse(f"{column.name} must be required: a row without it has no place", _LATEST)
    return column.name if column else ""


def _flag(given: Field, columns: Mapping[str, Column]) -> tuple[str, str]:
    """Return the column and the value, as a literal, by which a row deletes its key."""
    if not given.given:
        return "", ""
    given.limit_keys(("column", "value"))
    column = _column(given, "column", columns, _FLAGS, "is no flag: int, text or boolean is one")
    value = given.at("value").node
    if column is None:
        return "", ""
    if not given.has("value"):
        given.refuse("is missing: which value deletes?", "value")
    elif isinstance(value.value, tuple | Mapping):
        given.refuse("must be one value", "value")
    else:
        try:
            return column.name, literal(value.value, value.text, column)
        except ValueError as reason:
            given.refuse(str(reason), "value")
    return "", ""


def _column(
    place: Field, key: str, columns: Mapping[str, Column], kinds: Sequence[str], otherwise: str
) -> Column | None:
    """Return the column that is named under a key; None, with a problem, without a fitting one."""
    name = place.required_text(key)
    column = place.known(name, columns, "a column here", key) if name else None
    if column and column.kind not in kinds:
        place.refuse(f"{name} is {column.type}, which {otherwise}", key)
        return None
    return column


def _check_partitions(settings: Field, partitions: Sequence[Partition]) -> None:
    if not partitions:
        reason = "needs partitions: give partitioned: true to the columns that a file replaces by"
        settings.refuse(f"{OVERWRITE} {reason}", _MODE)
    for each in partitions:
        if each.transform.startswith("bucket"):
            reason = "has rows by chance, so a file does not bring all rows of it"
            settings.refuse(f"{OVERWRITE} cannot replace by {each}, which {reason}", _MODE)
