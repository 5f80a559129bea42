"""A key digest: the hashes of the keys in one data file, packed. Pure.

It shows of most keys that the data file lacks them, without reading the file. Its bytes, all
numbers little-endian:

| bytes   | hold                                                                           |
|---------|--------------------------------------------------------------------------------|
| 8       | `LGKEYS` and the version, two digits                                           |
| 16      | the name of the key and of the data file (`Subject.name`)                      |
| 1       | `cut`: so many of the last bits are cut off every hash                         |
| 4 each  | the cut hashes in ascending order, each as the difference from the one before  |
| 16      | BLAKE2b of all bytes before                                                    |

`cut` is the least number by which each difference fits 32 bits, so two writers make the same bytes.
Of 20,000 keys that a file of 4,000,000 lacks, about 0.0002 seem to be there.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spark_jobs.audit.keys.arrow_keys import occur

VERSION = 1  # of the bytes, and of `arrow_keys.mixed`
FOLDER = "_key_digests"  # Iceberg ignores folders with this first letter, as other readers do
_MAGIC = b"LGKEYS%02d" % VERSION
_NAME, _WIDTH = 16, 32
_HEAD = len(_MAGIC) + _NAME + 1
_Hashes: TypeAlias = NDArray[Any]


class Untrusted(Exception):
    """The bytes are no digest of the subject: damaged, cut off, or of something else."""


@dataclass(frozen=True)
class Subject:
    """A key in a data file, by the file's address and size in bytes.

    `key` describes the key's columns: the same text always means the same values.
    """

    location: str
    size: int
    key: str

    @property
    def address(self) -> str:
        """Return the address of the digest: in a folder beside the data file, named after it."""
        folder, _, file = self.location.rpartition("/")
        return f"{folder}/{FOLDER}/{file}.{_short(self.key.encode(), 4).hex()}-{VERSION}"

    @property
    def name(self) -> bytes:
        """Return 16 bytes that no other subject has."""
        return _short(f"{self.location}\n{self.size}\n{self.key}".encode(), _NAME)


@dataclass(frozen=True)
class KeyDigest:
    """The ascending hashes of a data file's keys, without their last `cut` bits."""

    cut: int
    hashes: _Hashes

    def seem_present(self, hashes: _Hashes) -> _Hashes:
        """Return which of the hashes may be in the data file; those that are not are new."""
        return occur(hashes >> np.uint64(self.cut), self.hashes)


def pack(hashes: _Hashes, subject: Subject) -> bytes:
    """Return the digest of a subject whose keys have these hashes, in ascending order."""
    widest = int(_steps(hashes).max(initial=0))
    cut = max(widest.bit_length() - _WIDTH, 0)
    if int(_steps(hashes >> np.uint64(cut)).max(initial=0)) >> _WIDTH:  # as each end is cut alone
        cut += 1
    steps = _steps(hashes >> np.uint64(cut)).astype("<u4")
    body = _MAGIC + subject.name + bytes([cut]) + steps.tobytes()
    return body + _short(body, _NAME)


def unpack(packed: bytes, subject: Subject) -> KeyDigest:
    """Return the digest of a subject from its bytes. Raises Untrusted."""
    body, checksum = memoryview(packed)[:-_NAME], packed[-_NAME:]
    if len(body) < _HEAD or _short(body, _NAME) != checksum:
        raise Untrusted(f"{subject.address} is damaged")
    if body[: _HEAD - 1] != _MAGIC + subject.name:
        raise Untrusted(f"{subject.address} is of another key or data file")
    steps = np.frombuffer(body, "<u4", offset=_HEAD)
    return KeyDigest(body[_HEAD - 1], np.cumsum(steps, dtype=np.uint64))


def _steps(ordered: _Hashes) -> _Hashes:
    return np.diff(ordered, prepend=np.uint64(0))


def _short(text: bytes | memoryview, length: int) -> bytes:
    return hashlib.blake2b(text, digest_size=length).digest()
