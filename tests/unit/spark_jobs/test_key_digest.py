"""Key digests: what they show of keys, and which bytes are not believed."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_jobs.audit.keys.column_hashes import mixed
from spark_jobs.audit.keys.key_digest import Subject, Untrusted, pack, unpack

SUBJECT = Subject("s3://lake/warehouse/a/b_1/data/one.parquet", 1234, "1:string")
HASHES = st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300)), max_size=50)
# A key of each type, and the hash that written digests have of it.
KNOWN: list[tuple[list[pa.Array], int]] = [
    ([pa.array([b"a key of more than eight bytes"])], 0xBDD7EF4F13C336FB),
    ([pa.array([b"x" * 1000])], 0x12F9D4860CE103DB),
    ([pa.array([True])], 0x001C01750AD34C71),
    ([pa.array([-5])], 0x654A88B7424B5952),
    ([pa.array([-0.0])], 0x0000000000000000),
    ([pa.array([float("nan")])], 0x67AA4BB631A24BB6),
    ([pa.array([Decimal("-1.50")], pa.decimal128(38, 2))], 0x5B8BB94E3DD2CB79),
    ([pa.array([7], pa.int32()), pa.array([b"two"])], 0xF9E9A12C8801C2F9),
]


def ordered(hashes: list[int]) -> Any:
    return np.unique(np.array(hashes, np.uint64))


@given(there=HASHES, others=HASHES)
@example(there=[15, 2**36], others=[])  # cut by four bits each, they are 2**32 apart
def test_a_hash_of_the_data_file_always_seems_present(there: list[int], others: list[int]) -> None:
    """No digest denies a hash that its data file has, and it denies far others."""
    digest = unpack(pack(ordered(there), SUBJECT), SUBJECT)
    assert digest.seem_present(ordered(there)).all()
    new = ordered([each for each in others if all(abs(each - one) >> 48 for one in there)])
    assert not digest.seem_present(new).any()


def test_few_of_many_new_hashes_seem_present() -> None:
    """Four bytes a key are enough to tell nearly all new keys from the known ones."""
    random = np.random.default_rng(1)
    there, new = (np.unique(random.integers(0, 2**64, 50_000, np.uint64)) for _ in range(2))
    packed = pack(there, SUBJECT)
    assert len(packed) < 4 * len(there) + 100
    assert unpack(packed, SUBJECT).seem_present(new).sum() == 0


@pytest.mark.parametrize(("columns", "hash_"), KNOWN, ids=[f"{each:x}" for _, each in KNOWN])
def test_hashes_stay_as_they_are_in_written_digests(columns: list[pa.Array], hash_: int) -> None:
    """A later version finds the keys in digests that this one wrote."""
    assert mixed([pa.chunked_array([column]) for column in columns])[0] == hash_


def test_bytes_stay_as_they_are_in_written_digests() -> None:
    """The same hashes always become the same bytes, as two runs may write one digest."""
    assert pack(ordered([1, 2**40, 2**63]), SUBJECT).hex() == (
        "4c474b45595330314c695c5cecc58e724270a82e07bb24e11f00000000000200"
        "0000feffffd3a77f1a6ed3978bdaa94f917c5bb022"
    )
    assert SUBJECT.address == ("s3://lake/warehouse/a/b_1/data/_key_digests/one.parquet.fe9538ca-1")


@given(at=st.integers(0), flip=st.integers(1, 255))
def test_changed_bytes_are_not_believed(at: int, flip: int) -> None:
    """A digest with one other byte is refused."""
    packed = bytearray(pack(ordered([5, 9, 2**50]), SUBJECT))
    packed[at % len(packed)] ^= flip
    with pytest.raises(Untrusted):
        unpack(bytes(packed), SUBJECT)


@given(length=st.integers(0))
def test_a_digest_that_was_cut_off_is_not_believed(length: int) -> None:
    """A digest whose end is missing is refused."""
    packed = pack(ordered([5, 9, 2**50]), SUBJECT)
    with pytest.raises(Untrusted):
        unpack(packed[: length % len(packed)], SUBJECT)


@pytest.mark.parametrize(
    "other", [{"location": "s3://lake/two.parquet"}, {"size": 9}, {"key": "2:string"}]
)
def test_a_digest_of_something_else_is_not_believed(other: dict[str, Any]) -> None:
    """A digest of another data file, of other contents or of another key is refused."""
    with pytest.raises(Untrusted):
        unpack(pack(ordered([5]), SUBJECT), replace(SUBJECT, **other))
