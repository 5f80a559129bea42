from pathlib import Path

import pytest
from typer.testing import CliRunner

from access.deployment import ROOT
from cli.main import app

_COMMANDS = (
    *("up", "down", "status", "drop", "runs", "show", "inspect", "query", "reconcile"),
    *("contract", "ledger", "demo"),
)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a machine without a stack, and an environment without a deployment."""
    monkeypatch.setenv("LAKEGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LAKEGATE_LEDGER_TABLE", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> str:
    made = tmp_path / "a.csv"
    made.write_text("id\n1\n")
    return str(made)


def test_every_command_is_in_the_help() -> None:
    """The help lists each command."""
    said = CliRunner().invoke(app, ["--help"])

    assert said.exit_code == 0
    assert all(f" {command} " in said.stdout for command in _COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["status", "--json"],
        ["runs"],
        ["show", "0123"],
        ["inspect", "0123"],
        ["query", "SELECT 1"],
        ["ledger", "rebuild"],
        ["ledger", "realign", "--dry-run"],
        ["reconcile"],
    ],
)
def test_without_a_stack_the_error_says_what_to_do(arguments: list[str]) -> None:
    """Without a stack a command prints no result and one error, and exits with 1."""
    said = CliRunner().invoke(app, arguments)

    assert said.exit_code == 1
    assert said.stdout == ""
    assert "run `lakegate up`" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "--state", "nowhere"],
        ["drop"],
        ["drop", "/no/such/file"],
        ["inspect", "0123", "--limit", "-1"],
        ["contract", "check", "/no/such.yaml"],
        ["ledger", "realign"],
        ["sing"],
    ],
)
def test_wrong_usage_ends_with_two(arguments: list[str]) -> None:
    """Invalid arguments are refused before anything is read, with exit code 2."""
    assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "shop/orders/a.csv"], "must end in /"),
        (["--key", "a", "--table", "shop.orders"], "not both"),
    ],
)
def test_an_ambiguous_key_is_refused(file: str, arguments: list[str], said: str) -> None:
    """Several files need a prefix, as the last would replace the others; a table excludes a key."""
    done = CliRunner().invoke(app, ["drop", file, file, *arguments])
    assert (done.exit_code, said in done.stderr) == (2, True)


def test_a_good_contract_is_said_to_be_one() -> None:
    """`contract check` prints the table and the number of checks, and needs no stack."""
    file = str(ROOT / "contracts" / "nyc.flights.yaml")

    said = CliRunner().invoke(app, ["contract", "check", file])

    assert said.exit_code == 0
    assert said.stdout.startswith(f"{file}: nyc.flights, ")


def test_all_problems_of_contracts_are_reported_at_once(tmp_path: Path) -> None:
    """`contract check` names file, line and reason for each of the files."""
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file in files:
        file.write_text("kind: Nonsense\n")

    said = CliRunner().invoke(app, ["contract", "check", *map(str, files)])

    assert said.exit_code == 1
    assert all(f"{file} is refused as a contract" in said.stderr for file in files)
    assert "line 1: kind" in said.stderr
