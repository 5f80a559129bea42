"""The local EMR Serverless gives a run rights that last as long as the run."""

import pytest

from infra.local.emr.rights import session_seconds

_MINUTE, _HOUR = 60, 3600


@pytest.mark.parametrize("minutes", [5, 60, 600, 700])
def test_a_session_lasts_longer_than_its_run(minutes: int) -> None:
    """A run of up to eleven hours keeps its rights until its time-out."""
    assert minutes * _MINUTE < session_seconds(minutes) <= 12 * _HOUR


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 15 * _MINUTE), (1440, 12 * _HOUR)])
def test_a_session_is_one_that_sts_gives(minutes: int, seconds: int) -> None:
    """A session lasts at least a quarter of an hour and at most twelve hours (AssumeRole)."""
    assert session_seconds(minutes) == seconds
