"""The limits of a deployment on files, contracts and reports. The job receives them too."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from lakegate.errors import Permanent

_PREFIX = "LAKEGATE_"


@dataclass(frozen=True)
class Limits:
    """Anything larger is refused with its reason (docs/limits.md). Sizes are in bytes.

    `largest_object` is a landed file as it lies on S3. `largest_unpacked` is the same without gzip,
    or the unpacked size of a Parquet file's pages. `longest_line` is a line of a text file, or a
    row over several lines; `largest_array` is a JSON file that is one array. `largest_contract`
    and `largest_report` are the sizes of those texts; `most_contract_values` counts the keys and
    values in a contract, with its aliases resolved. `most_batch_files` counts the files of one
    manifest.

    A Spark task without progress for `longest_stall` seconds ends its file.
    """

    largest_object: int = 100 << 30
    largest_unpacked: int = 1 << 40
    longest_line: int = 16 << 20
    largest_array: int = 256 << 20
    most_columns: int = 2_000
    most_rows: int = 10_000_000_000
    largest_contract: int = 1 << 20
    most_contract_values: int = 50_000
    largest_report: int = 16 << 20
    most_batch_files: int = 20
    longest_stall: int = 300

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Limits":
        """Return the limits in an environment, each from the variable `LAKEGATE_<NAME>`.

        Raises Permanent BAD_SETTING for a value that is not a whole number above zero.
        """
        return cls._given(lambda name: f"{_PREFIX}{name.upper()}", environment)

    @classmethod
    def chosen(cls, parameters: Mapping[str, str]) -> "Limits":
        """Return the limits among a template's parameters, as `LargestContract`. Raises as `of`."""
        return cls._given(lambda name: name.title().replace("_", ""), parameters)

    @classmethod
    def _given(cls, named: Callable[[str], str], texts: Mapping[str, str]) -> "Limits":
        names = {f.name: named(f.name) for f in fields(cls)}
        return cls(**{n: _positive(v, texts[v]) for n, v in names.items() if texts.get(v)})


DEFAULTS = Limits()


def _positive(variable: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        message = f"{variable} must be a whole number above zero, not {text!r}"
        raise Permanent("BAD_SETTING", message)
    return int(text)
