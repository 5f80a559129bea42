"""What can be wrong with a made-up file, on request."""

from collections.abc import Mapping
from enum import StrEnum

DAMAGED = 7  # so many rows are, where a fault is about single rows


class Fault(StrEnum):
    """What can be wrong with a file."""

    NULLS = "nulls"
    DUPLICATES = "duplicates"
    RANGE = "range"
    RENAMED = "renamed"
    MISSING = "missing"
    TYPE = "type"
    TRUNCATED = "truncated"
    RAGGED = "ragged"


# What each does, for people.
MEANING: Mapping[Fault, str] = {
    Fault.NULLS: f"{DAMAGED} rows have no country",
    Fault.DUPLICATES: f"{DAMAGED} rows repeat another one's parcel_id",
    Fault.RANGE: f"{DAMAGED} parcels weigh a thousand kilograms",
    Fault.RENAMED: "the column postage is called price",
    Fault.MISSING: "the column sent_at is not there",
    Fault.TYPE: "weight_kg is text, and in some rows no number",
    Fault.TRUNCATED: "the file ends in its middle",
    Fault.RAGGED: "the last line has a cell too many (csv only)",
}
