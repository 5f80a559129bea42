"""A turn lists job specs in order, as many as a message and a process can hold."""

from dataclasses import replace

import pytest

from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import MOST_BYTES, MOST_FILES, MOST_TEXT, Turn
from tests.unit.lakegate.test_jobspec import SPEC


def specs(count: int, *, size: int = 1, key: str = "a") -> list[JobSpec]:
    landed = replace(SPEC.landed, size=size, key=key)
    return [replace(SPEC, landed=landed, attempt=nth) for nth in range(1, count + 1)]


def test_a_turn_survives_its_message() -> None:
    """What is read from a message is what was written, in the same order."""
    turn = Turn.of(specs(3))
    assert Turn.from_argument(turn.to_argument()) == turn
    assert [spec.attempt for spec in turn.specs] == [1, 2, 3]
    assert Turn.from_argument(SPEC.to_argument()) is None


@pytest.mark.parametrize(
    ("given", "fit"),
    [
        (specs(MOST_FILES + 5), MOST_FILES),
        (specs(5, size=MOST_BYTES // 3), 3),
        (specs(2, size=MOST_BYTES + 1), 1),
    ],
    ids=["files", "bytes", "a large file"],
)
def test_a_turn_is_bounded(given: list[JobSpec], fit: int) -> None:
    """A turn has the first files that fit, and at least one."""
    assert Turn.of(given).specs == tuple(given[:fit])


def test_a_turn_fits_into_a_message() -> None:
    """Long keys make a turn shorter, since a message holds so many characters only."""
    turn = Turn.of(specs(MOST_FILES, key="ä" * 512))
    assert 1 < len(turn.specs) < MOST_FILES
    assert len(turn.to_argument()) <= MOST_TEXT + 100


@pytest.mark.parametrize("tables", [[], ["shop.a", "shop.b"]])
def test_a_turn_is_of_one_table(tables: list[str]) -> None:
    """A message that lists no file, or files of several tables, is refused."""
    text = Turn(tuple(replace(SPEC, table=table) for table in tables)).to_argument()
    with pytest.raises(ValueError, match="of one table"):
        Turn.from_argument(text)
