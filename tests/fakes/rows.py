"""The rows of a fake data file, which its name shows.

Each part of a name, up to its `#`, is of one source: of a landed object, its address and version.
`AND` is between parts. Each has three rows; after a `*` is how many times three. The rows of a
landed object have a key each, and a place in the order of `latestBy`, the same for all of them.
Where an upsert replaced some of its rows, the keys of those that are left follow `LEFT`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from zlib import crc32

# Of private use, as a key may have any other character.
AND, LEFT = "\U000f0000", "\U000f0001"
ROWS_A_FILE = 3
_LANDED = "s3://landing/"
_KEYS = "0123"  # all but one of them are in each file


def source_of(line: str) -> str:
    """Return a line without the mark of who wrote it."""
    return line.partition("#")[0]


@cache
def sources_in(file: str) -> tuple[str, ...]:
    """Return the lines of a data file, without the marks of who wrote them."""
    return tuple(source_of(line) for line in file.split(AND))


def rewritten(files: Iterable[str], mark: str) -> str:
    """Return the data file that takes the place of these; `mark` says who wrote it."""
    return AND.join(f"{line}#{mark}" for file in files for line in sources_in(file))


@cache
def rows_in(file: str) -> int:
    """Return the number of rows in a data file."""
    return sum(_count(line) for line in sources_in(file))


def _count(line: str) -> int:
    if keys := keys_in(line):
        return len(keys)
    _, starred, times = line.rpartition("*")
    return ROWS_A_FILE * int(times if starred and times.isdigit() else 1)


@cache
def keys_in(line: str) -> str:
    """Return the keys of the rows of a line, each a digit; "" if the rows have none."""
    if not line.startswith(_LANDED):
        return ""
    whole, cut, left = line.partition(LEFT)
    return left if cut else _KEYS.replace(str(crc32(whole.encode()) % len(_KEYS)), "")


def place_of(line: str) -> int:
    """Return the place of a landed object's rows in the order of `latestBy`."""
    return crc32(line.partition(LEFT)[0].encode()) // len(_KEYS) % 3


@cache
def rows_of_file(file: str) -> tuple[str, ...]:
    """Return the rows of a data file: for those with keys one text each, else one for a line."""
    return tuple(row for line in sources_in(file) for row in rows_of_source(line))


def rows_of_source(line: str) -> tuple[str, ...]:
    """Return the rows of a line."""
    whole = line.partition(LEFT)[0]
    return tuple(f"{whole}{LEFT}{key}" for key in keys_in(line)) or (line,)


@dataclass(frozen=True)
class Merged:
    """The data files of a table after an upsert: those `left`, and `new` for the rows of the file.

    `updated` rows have others in their place, `inserted` ones are new.
    """

    left: tuple[str, ...]
    new: tuple[str, ...]
    updated: int
    inserted: int


def merge(files: Iterable[str], file: str, mark: str, *, latest: bool) -> Merged:
    """Put the rows of a landed object's data file into the place of those with the same keys.

    As MERGE does, each row with such a key is replaced; with `latest` only if its place is not
    higher. `mark` is put after what is written anew.
    """
    whole, files = source_of(file), tuple(files)
    there = [(line, key) for each in files for line in sources_in(each) for key in keys_in(line)]
    mine = keys_in(whole)
    newer = {line for line, _ in there if latest and place_of(line) > place_of(whole)}
    matched = [key for line, key in there if key in mine and line not in newer]
    inserted = [key for key in mine if key not in {key for _, key in there}]
    written = "".join(sorted([*matched, *inserted]))
    gone = frozenset(mine)
    left = [_without(each, gone, newer, mark) for each in files]
    new = file if written == mine else f"{whole}{LEFT}{written}#{mark}"
    return Merged(tuple(filter(None, left)), (new,) if written else (), len(matched), len(inserted))


def _without(file: str, keys: frozenset[str], newer: set[str], mark: str) -> str:
    """Return a data file without its rows that have such a key; the same if it has none."""
    lines = sources_in(file)
    left = list(filter(None, (line if line in newer else _cut(line, keys) for line in lines)))
    return file if tuple(left) == lines else rewritten(left, mark)


def _cut(line: str, keys: frozenset[str]) -> str:
    own = keys_in(line)
    left = "".join(key for key in own if key not in keys)
    if left == own:
        return line
    return f"{line.partition(LEFT)[0]}{LEFT}{left}" if left else ""
