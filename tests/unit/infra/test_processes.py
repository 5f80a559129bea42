"""The local stack's processes, of which each test starts real ones."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cli.local import slack_messages
from infra.local import ministack, processes
from infra.local.processes import Command
from lakegate.errors import LakegateError
from tests.fakes import wire
from tests.waiting import PATIENCE, eventually

_SLEEP = "import time; print('begun', flush=True); time.sleep(600)"
_DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + _SLEEP
_PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_SLEEP!r}]);" + _SLEEP

_SERVER = """
import socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
memory = bytearray(200_000_000)
for _ in range(30):
    threading.Thread(target=time.sleep, args=(600,)).start()
print(server.getsockname()[1], "begun", flush=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    processes.stop(tmp_path, "part", grace=0)


def command(home: Path, code: str = _SLEEP, **env: str) -> Command:
    return Command("part", (sys.executable, "-c", code), home, env)


def begin(home: Path, code: str = _SLEEP) -> psutil.Process:
    """Start the part and wait until its code runs."""
    processes.start(home, command(home, code))
    eventually(lambda: "begun" in log(home))
    found = processes.running(home, "part")
    assert found
    return found


def log(home: Path) -> str:
    return processes.log_file(home, "part").read_text()


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("code", [_SLEEP, _DEAF], ids=["heeds SIGTERM", "ignores SIGTERM"])
def test_a_started_part_runs_until_it_is_stopped(home: Path, code: str) -> None:
    """A stopped part has ended, even if it ignores SIGTERM, and cannot be stopped again."""
    process = begin(home, code)

    assert processes.stop(home, "part", grace=0.2)
    assert has_ended(process)
    assert processes.running(home, "part") is None
    assert not processes.stop(home, "part")


def test_a_part_without_a_whole_record_can_be_stopped(home: Path) -> None:
    """A part whose record a full disk left empty is not known to run, but it is stopped."""
    process = begin(home)
    (home / "run" / "part.json").write_text("")

    assert processes.running(home, "part") is None
    assert processes.stop(home, "part")
    assert has_ended(process)


def test_a_killed_part_is_gone_only_with_its_port(home: Path) -> None:
    """A dying process of many threads counts as running until its port is free."""
    process = begin(home, _SERVER)
    port = int(log(home).split()[0])

    process.kill()
    eventually(lambda: processes.running(home, "part") is None)

    socket.create_server(("127.0.0.1", port)).close()


def test_children_of_a_crashed_part_are_stopped(home: Path) -> None:
    """Children of a killed part are found and ended without their parent."""
    parent = begin(home, _PARENT)
    eventually(lambda: log(home).count("begun") == 2)  # in any order
    (child,) = parent.children()
    parent.kill()
    eventually(lambda: processes.running(home, "part") is None)

    assert processes.stop(home, "part")
    assert has_ended(child)
    assert not processes.stop(home, "part")


def test_a_stranger_with_the_recorded_pid_is_left_alone(home: Path) -> None:
    """Another process with the recorded pid does not count as the part and is not killed."""
    begin(home)
    processes.stop(home, "part")
    stranger = subprocess.Popen([sys.executable, "-c", _SLEEP], stdout=subprocess.DEVNULL)
    created = psutil.Process(stranger.pid).create_time() - 3
    record = {"pid": stranger.pid, "created": created, "fingerprint": ""}
    (home / "run" / "part.json").write_text(json.dumps(record))

    assert processes.running(home, "part") is None
    assert not processes.stop(home, "part")
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_part_is_found_after_the_clock_was_set(home: Path) -> None:
    """A running part is known by its environment if its creation time seems to differ."""
    process = begin(home)
    file = home / "run" / "part.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "created": record["created"] + 3600}))

    assert processes.running(home, "part") == process


def test_another_home_s_part_is_left_alone(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two stacks on one machine do not stop each other's parts of the same name."""
    process = begin(home)

    assert not processes.stop(tmp_path_factory.mktemp("other"), "part")
    assert not has_ended(process)


def test_a_part_whose_command_changed_is_replaced(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed variable of the command replaces the part; a terminal's variable does not."""
    old = begin(home)
    monkeypatch.setenv("WINDOWID", "77")

    assert processes.is_running(home, command(home))
    assert not processes.is_running(home, command(home, A="1"))
    processes.start(home, command(home, A="1"))
    assert has_ended(old)
    assert processes.is_running(home, command(home, A="1"))


def test_the_error_for_a_part_that_dies_at_its_start_shows_its_log(home: Path) -> None:
    """The error names the part and its log file and shows the log's last lines."""
    processes.start(home, command(home, "print('no such port'); raise SystemExit(3)"))

    with pytest.raises(LakegateError) as caught:
        processes.wait_until(home, "part", lambda: False, timeout=PATIENCE)

    message = str(caught.value)
    assert "part did not come up: it ended" in message
    assert str(processes.log_file(home, "part")) in message
    assert "no such port" in message


def test_a_part_that_does_not_answer_in_time_is_an_error(home: Path) -> None:
    """A process that never serves is an error, not an endless wait."""
    begin(home)

    with pytest.raises(LakegateError, match="did not answer within 0 seconds"):
        processes.wait_until(home, "part", lambda: False, timeout=0)


def test_the_log_is_the_one_of_this_start(home: Path) -> None:
    """A start begins a new log and keeps the last one, so an error shows no old lines."""
    begin(home)
    processes.start(home, command(home, "raise SystemExit"))

    eventually(lambda: processes.running(home, "part") is None)
    assert "begun" not in log(home)
    assert "begun" in (home / "logs" / "part.log.1").read_text()


def test_no_part_sees_the_user_s_aws_account(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The local servers do not get the terminal's credentials, profiles and proxies."""
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    monkeypatch.setenv("TERM", "xterm")

    environment = begin(home).environ()

    assert environment["TERM"] == "xterm"
    assert not [name for name in environment if name.startswith(("AWS_", "https_proxy"))]


def test_the_users_proxy_gets_no_call_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy, which cannot reach this machine, the stack's parts are seen to answer."""
    for name, value in {"http_proxy": wire.nobody(), "no_proxy": "intranet"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", "")
    with wire.answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]") as address:
        assert processes.answers(address)
        assert slack_messages.messages(address) == []
        assert processes.answers(address)
    assert os.environ["no_proxy"] == "intranet,127.0.0.1"


def test_the_users_proxy_gets_no_call_of_the_local_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack is deployed behind a proxy as without one."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("http_proxy", wire.nobody())
    body = b'{"QueueUrls": []}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with wire.answering(answer) as address:
        assert ministack.client("sqs", address).list_queues()["QueueUrls"] == []
