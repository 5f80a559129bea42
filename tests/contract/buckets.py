"""The two buckets, in memory and on S3."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

from moto.s3.models import s3_backends

from functions.adapters.landing import Landing
from functions.adapters.s3 import Lake
from lakegate.limits import Limits
from tests.fakes.storage import FakeLake, FakeLanding

LIMITS = Limits(largest_contract=10_000, largest_report=20_000)


@dataclass(frozen=True)
class Buckets:
    """The adapters, and functions to put a contract, delete a landed object, and wait.

    `other` is a landing bucket of others, into which `land_there` puts an object.
    """

    landing: Landing | FakeLanding
    lake: Lake | FakeLake
    put_text: Callable[[str, bytes], object]
    delete: Callable[[str], object]
    wait: Callable[[float], object]
    other: str
    land_there: Callable[[str, bytes], object]


def aged(name: str, seconds: float) -> None:
    """Make every version in a moto bucket older by this much."""
    keys = s3_backends["123456789012"]["aws"].buckets[name].keys
    for entry in chain.from_iterable(entries for _, entries in keys.iterlists()):
        entry.last_modified -= timedelta(seconds=seconds)


def bucket(s3: Any, *, versioned: bool = True) -> str:
    """Return a new bucket."""
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    if versioned:
        status = {"Status": "Enabled"}
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=status)
    return name
