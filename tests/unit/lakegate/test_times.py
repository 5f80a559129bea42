import pytest

from lakegate.times import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (12.3, "12 s"),
        (59.96, "1 min"),
        (192, "3 min 12 s"),
        (3600, "1 h"),
        (3601, "1 h"),
        (187_200, "2 d 4 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, words: str) -> None:
    """A duration has at most two units."""
    assert duration(seconds) == words
