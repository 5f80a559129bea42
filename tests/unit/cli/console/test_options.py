from datetime import UTC, datetime, timedelta

import pytest
import typer

from cli.console.options import named, since


@pytest.mark.parametrize("text", ["2026-03-01T12:00+00:00", "2026-03-01T13:00:00+01:00"])
def test_a_time_is_read_in_its_zone(text: str) -> None:
    """`--since` takes a time with its zone."""
    assert since(text) == "2026-03-01T12:00:00.000+00:00"


@pytest.mark.parametrize(("text", "seconds"), [("90min", 5400), ("36h", 129_600), ("7d", 604_800)])
def test_a_time_may_be_so_long_ago(text: str, seconds: int) -> None:
    """`--since` takes minutes, hours and days before now."""
    then = datetime.fromisoformat(since(text))  # first: it is from before this moment
    gone = datetime.now(UTC) - then
    assert timedelta() <= gone - timedelta(seconds=seconds) < timedelta(minutes=1)


@pytest.mark.parametrize("text", ["", "yesterday", "7", "2026-13-01", "-7d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """Anything else is refused with examples."""
    with pytest.raises(typer.BadParameter, match="36h"):
        since(text)


def test_a_time_to_come_is_refused() -> None:
    """No option means a time that has not passed yet: it is a slip."""
    with pytest.raises(typer.BadParameter, match="is in the future"):
        since("9999-12-01")


def test_a_person_without_a_user_name_has_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system knows no name of the user, as in many containers, it is asked for."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    assert named("")

    monkeypatch.setattr("os.getuid", lambda: 4_242_424)
    assert named(" Ada ") == "Ada"
    with pytest.raises(typer.BadParameter, match="--by"):
        named("")
