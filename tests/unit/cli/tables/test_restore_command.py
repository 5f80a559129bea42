import pytest
from typer.testing import CliRunner

from cli.main import app


@pytest.mark.parametrize("to", ["nonsense", "4f0c1d2", "2999-01-01"])
def test_what_is_neither_a_commit_nor_a_time_is_refused(to: str) -> None:
    """A state is a past time, or 8 characters of a commit: the refusal of --to names both."""
    said = CliRunner().invoke(app, ["restore", "shop.orders", "--to", to, "--reason", "bad load"])
    assert (said.exit_code, "Invalid value for --to: " in said.stderr) == (2, True)
    assert "or at least 8 characters of a commit of `lakegate log`" in " ".join(said.stderr.split())
