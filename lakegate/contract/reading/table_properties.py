"""Read the table properties that a contract may set, by Iceberg's names."""

from lakegate.contract.text.fields import Field

CODEC = "write.parquet.compression-codec"
_MIB = 1 << 20
CODECS = ("zstd", "snappy", "gzip", "uncompressed")
_LEVELS = {"zstd": 22, "gzip": 9}
_SIZES = {
    "write.target-file-size-bytes": (_MIB, 1 << 40),
    "write.parquet.row-group-size-bytes": (_MIB, (1 << 31) - 1),
}
_LEVEL, _VERSION = "write.parquet.compression-level", "format-version"
TABLE_PROPERTIES = (CODEC, _LEVEL, *_SIZES, _VERSION)


def read_table_properties(given: Field) -> dict[str, str]:
    """Return the table properties that a contract may set, by Iceberg's names."""
    if not given.given:
        return {}
    given.limit_keys(TABLE_PROPERTIES)
    chosen = {name: _number(given, name, *ends) for name, ends in _SIZES.items() if given.has(name)}
    codec = given.choice(CODEC, CODECS, default="zstd")
    if given.has(CODEC):
        chosen[CODEC] = codec
    if given.has(_LEVEL) and codec not in _LEVELS:
        given.refuse(f"{codec} has no levels", _LEVEL)
    elif given.has(_LEVEL):
        chosen[_LEVEL] = _number(given, _LEVEL, 1, _LEVELS[codec])
    if given.has(_VERSION) and given.at(_VERSION).node.text != "2":
        given.refuse("must be 2: Nessie has no tables of version 3 yet", _VERSION)
    return chosen


def _number(given: Field, name: str, least: int, most: int) -> str:
    number = given.count(name)
    if number is not None and not least <= number <= most:
        given.refuse(f"must be from {least:,} to {most:,}", name)
    return str(number)
