import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from infra.local import processes
from infra.local.processes import Command
from lakegate.errors import LakegateError
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


def begin(home: Path, code: str = _SLEEP) -> int:
    """Start the part and wait until its code runs; returns its pid."""
    processes.start(home, command(home, code))
    log = processes.log_file(home, "part")
    eventually(lambda: log.exists() and "begun" in log.read_text())
    found = processes.running(home, "part")
    assert found
    return found.pid


def lives(pid: int) -> bool:
    """Whether the process runs: one that ended, but was not waited for, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_started_part_runs_until_it_is_stopped(home: Path) -> None:
    """Stopping ends the process, and there is nothing to stop a second time."""
    pid = begin(home)

    assert processes.stop(home, "part")
    assert not lives(pid)
    assert processes.running(home, "part") is None
    assert not processes.stop(home, "part")


def test_a_killed_part_is_gone_only_with_its_port(home: Path) -> None:
    """A process of many threads holds its port while it dies; until then it counts as running."""
    pid = begin(home, _SERVER)
    port = int(processes.log_file(home, "part").read_text().split()[0])

    os.kill(pid, signal.SIGKILL)
    eventually(lambda: processes.running(home, "part") is None)

    socket.create_server(("127.0.0.1", port)).close()


def test_a_part_that_died_is_not_running(home: Path) -> None:
    """A record of a process that was killed does not pass for a running part."""
    os.kill(begin(home), signal.SIGKILL)

    eventually(lambda: processes.running(home, "part") is None)


def test_a_part_that_ignores_the_request_to_end_is_killed(home: Path) -> None:
    """Stopping succeeds within the grace time whatever the process does."""
    pid = begin(home, _DEAF)

    assert processes.stop(home, "part", grace=0.2)
    assert not lives(pid)


def test_what_a_crashed_part_left_behind_is_stopped(home: Path) -> None:
    """Children of a part that was killed are found and ended, though their parent is gone."""
    parent, log = begin(home, _PARENT), processes.log_file(home, "part")
    eventually(lambda: log.read_text().count("begun") == 2)  # whichever of the two is first
    os.kill(parent, signal.SIGKILL)
    eventually(lambda: processes.running(home, "part") is None)

    assert processes.stop(home, "part")
    assert not processes.stop(home, "part")


def test_a_stranger_with_the_recorded_pid_is_left_alone(home: Path) -> None:
    """A pid that was given to another process since is neither taken for the part nor killed."""
    begin(home)
    processes.stop(home, "part")
    stranger = subprocess.Popen([sys.executable, "-c", _SLEEP], stdout=subprocess.DEVNULL)
    record = {"pid": stranger.pid, "began": "another boot:12345", "fingerprint": ""}
    (home / "run" / "part.json").write_text(json.dumps(record))

    assert processes.running(home, "part") is None
    assert not processes.stop(home, "part")
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_another_home_s_part_is_left_alone(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two stacks on one machine do not stop each other's parts of the same name."""
    pid = begin(home)

    assert not processes.stop(tmp_path_factory.mktemp("other"), "part")
    assert lives(pid)


def test_a_part_runs_as_its_command_says_or_not_at_all(home: Path) -> None:
    """A part whose command changed, be it one variable, counts as not running and is replaced."""
    old = begin(home)

    assert processes.is_running(home, command(home))
    assert not processes.is_running(home, command(home, A="1"))
    processes.start(home, command(home, A="1"))
    assert not lives(old)
    assert processes.is_running(home, command(home, A="1"))


def test_a_part_that_dies_at_its_start_is_told_with_the_end_of_its_log(home: Path) -> None:
    """The error names the part and its log file and shows what the part said last."""
    processes.start(home, command(home, "print('no such port'); raise SystemExit(3)"))

    with pytest.raises(LakegateError) as caught:
        processes.wait_until(home, "part", lambda: False, timeout=PATIENCE)

    told = str(caught.value)
    assert "part did not come up: it ended" in told
    assert str(processes.log_file(home, "part")) in told
    assert "no such port" in told


def test_a_part_that_does_not_answer_in_time_is_told(home: Path) -> None:
    """A process that runs but never serves is an error, not an endless wait."""
    begin(home)

    with pytest.raises(LakegateError, match="did not answer within 0 seconds"):
        processes.wait_until(home, "part", lambda: False, timeout=0)


def test_the_log_is_the_one_of_this_start(home: Path) -> None:
    """A new start begins a new log and keeps the one before, so an error shows no old lines."""
    begin(home)
    processes.start(home, command(home, "raise SystemExit"))

    eventually(lambda: processes.running(home, "part") is None)
    assert "begun" not in processes.log_file(home, "part").read_text()
    assert "begun" in (home / "logs" / "part.log.1").read_text()


def test_who_ended_at_once_does_not_run(home: Path) -> None:
    """What ended before it could be asked when it began is over, and is no other's to stop."""
    begin(home)
    processes.stop(home, "part")
    record = processes.Record(os.getpid() + 2**22, began="", fingerprint="")
    (home / "run" / "part.json").write_text(json.dumps(asdict(record)))
    assert processes.running(home, "part") is None
    assert not processes.stop(home, "part")


def test_no_part_sees_the_user_s_aws_account(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials, profiles and proxies of the terminal are not handed to the local servers."""
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    monkeypatch.setenv("TERM", "xterm")

    pid = begin(home)
    found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")

    assert b"TERM=xterm" in found
    assert not [one for one in found if one.startswith((b"AWS_", b"https_proxy"))]


def test_a_part_runs_on_whatever_terminal_asks_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal's own variables do not make a running part another one."""
    begin(home)
    monkeypatch.setenv("WINDOWID", "77")

    assert processes.is_running(home, command(home))
