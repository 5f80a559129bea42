import errno
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from access.deployment.checkout import ROOT
from cli.main import Commands, app, begin
from lakegate.errors import Transient
from tests.unit.contract.contract_texts import contract_text


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
    assert "un `lakegate up`" in said.stderr
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


def test_several_files_need_a_prefix(file: str) -> None:
    """One key for several files is wrong usage, as the last would replace the others."""
    done = CliRunner().invoke(app, ["drop", file, file, "--key", "shop/orders/a.csv"])
    assert (done.exit_code, "must end in /" in done.stderr) == (2, True)


def test_all_problems_of_contracts_are_reported_at_once(tmp_path: Path) -> None:
    """`contract check` names file, line and reason for each of the files."""
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file in files:
        file.write_text("kind: Nonsense\n")

    said = CliRunner().invoke(app, ["contract", "check", *map(str, files)])

    assert said.exit_code == 1
    assert all(f"{file} is refused as a contract" in said.stderr for file in files)
    assert "line 1: kind" in said.stderr


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, in this checkout."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


_SLOWEST = {"duckdb", "flask", "jsonschema", "psutil", "pyarrow", "pyiceberg", "slack_sdk"}
_SLOW = {"boto3", "cryptography", "requests", *_SLOWEST}
_ALL_HELP = """
import sys
from typer.main import get_command
from cli.main import app

def show(*command):
    try: app([*command, "--help"])
    except SystemExit as end: assert not end.code

show()
for name, command in get_command(app).commands.items():
    show(name)
    for part in getattr(command.loaded(), "commands", ()): show(name, part)
print(*sys.modules, file=sys.stderr)
"""


def test_help_imports_little() -> None:
    """The list of commands needs none of their libraries; help of one command, no large one."""
    said = python(_ALL_HELP)
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("Options:") > 45
    assert not _SLOWEST & {*said.stderr.split()}
    first = python(_ALL_HELP.replace("get_command(app).commands.items()", "()"))
    assert not {"rich", "pydantic", "functions.adapters.all", *_SLOW} & {*first.stderr.split()}


def test_a_check_of_contracts_imports_what_it_needs(tmp_path: Path) -> None:
    """To check a contract and its patterns needs neither a library of AWS nor pandas."""
    column = "{name: day, logicalType: string, logicalTypeOptions: {pattern: '^[0-9]+$'}}"
    (tmp_path / "a.yaml").write_text(contract_text(f"- {column}"))
    checks = f"app(['contract', 'check', {str(tmp_path / 'a.yaml')!r}], standalone_mode=False)"
    said = python(
        f"import sys; from cli.main import app; {checks}; print(*sys.modules, file=sys.stderr)"
    )
    assert "2 checks" in said.stdout, said.stderr
    assert not {"pandas", "boto3"} & {*said.stderr.split()}


@pytest.mark.parametrize("name", get_command(app).commands)  # type: ignore[attr-defined]
def test_every_command_is_found_where_the_list_says(name: str) -> None:
    """Each command is in the help, and its own help is more than the line there."""
    assert f"  {name} " in CliRunner().invoke(app, ["--help"]).stdout
    said = CliRunner().invoke(app, [name, "--help"])
    assert said.exit_code == 0
    assert said.stdout.startswith(f"Usage: root {name}")
    assert "--install-completion" not in said.stdout


def test_the_list_of_commands_is_cut_nowhere() -> None:
    """Each line of the help fits a terminal of 80 columns."""
    assert "..." not in CliRunner().invoke(app, ["--help"]).stdout.replace("[ARGS]...", "")


def test_the_version_is_printed() -> None:
    """`--version` prints the version of the package."""
    said = CliRunner().invoke(app, ["--version"])
    assert said.stdout == f"lakegate {version('lakegate')}\n"


@pytest.mark.parametrize(
    ("line", "completed"),
    [("lakegate runs --wai", ["--waiting"]), ("lakegate contract lis", ["list"])],
)
def test_a_shell_completes_commands_and_options(line: str, completed: list[str]) -> None:
    """Completion knows the options of a command, and the commands of a group."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    said = python(
        "from cli.main import app; app(prog_name='lakegate')",
        _LAKEGATE_COMPLETE="complete_bash",
        **words,
    )
    assert said.stdout.split() == completed


def test_an_error_is_json_for_programs() -> None:
    """With --json an error is a JSON document on standard error, with code and message."""
    said = CliRunner().invoke(app, ["runs", "--json"])
    assert (said.exit_code, said.stdout) == (1, "")
    assert json.loads(said.stderr)["error"]["code"] == "NO_STACK"
    assert "lakegate up" in json.loads(said.stderr)["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("runs --json --state nowhere", "nowhere"),
        ("runs --json --stat nowhere", "No such option: --stat"),
        ("runs --json --limit", "requires an argument"),
        ("runs --json shop.orders", "unexpected extra argument"),
        ("contract test --json", "FILE"),
        ("contract sing --json", "sing"),
        ("sing --json", "No such command 'sing'"),
        ("--song runs --json", "No such option: --song"),
    ],
)
def test_wrong_usage_is_json_for_programs(arguments: str, said: str) -> None:
    """So is an error about the arguments, wherever it is found; it exits with 2 as without it."""
    wrong = CliRunner().invoke(app, arguments.split())
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    error = json.loads(wrong.stderr)["error"]
    assert (error["code"], said in error["message"]) == ("WRONG_USAGE", True)


def test_a_nessie_that_is_down_is_told_with_what_to_do() -> None:
    """The second line names the commands, as the adapter cannot know which one helps."""
    own = typer.Typer(cls=Commands)
    own.callback()(begin)

    @own.command("other")
    def down() -> None:
        raise Transient("CATALOG_UNAVAILABLE", "Nessie did not answer")

    done = CliRunner().invoke(own, ["other"])
    first, second = done.stderr.strip().splitlines()
    assert first == "Nessie did not answer (CATALOG_UNAVAILABLE)"
    assert "`lakegate up`" in second
    assert "`lakegate doctor`" in second


def test_a_full_disk_is_told_in_a_line() -> None:
    """Output onto a full disk ends as an error, without a stack trace."""
    own = typer.Typer(cls=Commands)
    own.callback()(begin)

    @own.command("other")
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    done = CliRunner().invoke(own, ["other"])
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("a disk is full")


def test_every_character_is_printed_whatever_the_locale() -> None:
    """Where a locale's encoding lacks a character, a pipe gets it as UTF-8."""
    code = "from cli.main import app; app(['--help'])"
    said = python(code, PYTHONIOENCODING="latin-1")
    assert (said.returncode, "LAKEGATE_…" in said.stdout) == (0, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("drop", "Stopped. Files listed above are ingested, and perhaps one more"),
        ("query", "Stopped.\n"),
        ("other", "run the command again"),
    ],
)
def test_an_interrupted_command_says_how_to_continue(name: str, said: str) -> None:
    """After Ctrl-C a command says what to do, unless it only reads, and exits so."""
    own = typer.Typer(cls=Commands)
    own.callback()(begin)

    @own.command(name)
    def interrupted() -> None:
        raise KeyboardInterrupt

    done = CliRunner().invoke(own, [name])
    assert done.exit_code == 130
    assert said in done.stderr


_LOGGING = """
import logging, sys, typer, warnings
from cli.main import Commands, begin
from functions.telemetry import logger
app = typer.Typer(cls=Commands)
app.callback()(begin)
@app.command()
def noisy():
    logger.info("for developers")
    logging.warning("of a library")
    warnings.warn("old")
    print("for people")
sys.argv = ["lakegate", *{arguments}, "noisy"]
app()
"""


@pytest.mark.parametrize("arguments", [[], ["--verbose"]])
def test_logs_are_printed_on_request_only(arguments: list[str]) -> None:
    """What is logged for developers is hidden from people, unless --verbose is given."""
    said = python(_LOGGING.format(arguments=arguments))
    everything = said.stdout + said.stderr
    assert "for people" in said.stdout
    for line in ("for developers", "of a library", "old"):
        assert (line in everything) is bool(arguments)


@pytest.mark.parametrize("command", ["up", "down", "demo"])
def test_no_stage_is_taken_for_the_local_stack(command: str) -> None:
    """What starts or stops the local stack refuses a stage, instead of doing that beside it."""
    said = CliRunner().invoke(app, ["--stage", "dev", command])
    assert said.exit_code == 2
    assert "leave out --stage" in said.stderr
