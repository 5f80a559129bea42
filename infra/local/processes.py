"""Start, find and stop the local stack's processes, apart from the terminal.

Each process has a record under the home directory: its pid, when it was created and what was run. A
stranger that was given the pid is left alone. The environment of a part's processes names home and
part, so that whatever a part started is found and stopped with it.
"""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from lakegate.errors import LakegateError

MARK = "LAKEGATE_PART"
_PAUSE = 0.05
_SECONDS_APART = 2.0  # a process's creation time varies by a rounded second
_SECONDS_TO_DIE = 10.0
_LAST_LINES = 20
_HERE = "127.0.0.1"


@dataclass(frozen=True)
class Command:
    """A part of the stack and how to run it; `env` is added to the plain environment."""

    part: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Return a digest of the command, its directory and its variables."""
        command = [self.argv, str(self.cwd), sorted(self.env.items())]
        return hashlib.sha256(json.dumps(command).encode()).hexdigest()[:16]


def log_file(home: Path, part: str) -> Path:
    """Return the file with a part's output."""
    return home / "logs" / f"{part}.log"


def running(home: Path, part: str) -> psutil.Process | None:
    """Return the part's process, or None where it does not run."""
    record = _record(home, part)
    try:
        process = psutil.Process(record.get("pid", -1))
        is_same = abs(process.create_time() - record.get("created", 0)) < _SECONDS_APART
    except (psutil.Error, ValueError):
        return None
    # A dying process has no environment any more; setting the clock moves creation times.
    is_ours = is_same or _carries(process, _mark(home, part))
    return process if is_ours and not _has_ended(process) else None


def is_running(home: Path, command: Command) -> bool:
    """Return whether the part runs as this command says."""
    fingerprint = _record(home, command.part).get("fingerprint")
    return fingerprint == command.fingerprint and running(home, command.part) is not None


def start(home: Path, command: Command) -> None:
    """Start the part as this command says, after stopping what still runs of it."""
    stop(home, command.part)
    log = log_file(home, command.part)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    environment = {**_plain_environment(), **command.env, MARK: _mark(home, command.part)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal does not reach it
        )
    file = _record_file(home, command.part)
    file.parent.mkdir(parents=True, exist_ok=True)
    created = psutil.Process(process.pid).create_time()  # of a zombie if it ended at once
    record = {"pid": process.pid, "created": created, "fingerprint": command.fingerprint}
    file.write_text(json.dumps(record))


def stop(home: Path, part: str, grace: float = 20.0) -> bool:
    """Stop a part and everything it started; return False where nothing of it ran.

    Its process has `grace` seconds to end after SIGTERM; what is left then is killed.
    """
    if process := running(home, part):
        _send(process.terminate)
        _still_running([process], grace)
    left = [each for each in psutil.process_iter() if _carries(each, _mark(home, part))]
    for each in left:
        _send(each.kill)
    if pids := [each.pid for each in _still_running(left, _SECONDS_TO_DIE)]:
        raise LakegateError("PART_NOT_STOPPED", f"{part} does not end: processes {pids}")
    _record_file(home, part).unlink(missing_ok=True)
    return bool(process or left)


def wait_until(home: Path, part: str, answers: Callable[[], bool], timeout: float) -> None:
    """Wait until the part answers.

    Raises LakegateError with the end of the part's log when it ends or `timeout` seconds pass.
    """
    deadline = time.monotonic() + timeout
    while not answers():
        if running(home, part) is None:
            raise _not_up(home, part, "it ended")
        if time.monotonic() > deadline:
            raise _not_up(home, part, f"it did not answer within {timeout:.0f} seconds")
        time.sleep(_PAUSE)


def call_directly() -> None:
    """Have this process call its own machine without the user's proxy, which cannot reach it."""
    for name in ("no_proxy", "NO_PROXY"):
        known = os.environ.get(name, "")
        if known != "*" and not known.endswith(_HERE):
            os.environ[name] = f"{known},{_HERE}" if known else _HERE


def answers(url: str, headers: Mapping[str, str] | None = None) -> bool:
    """Return whether a server answers this request with success."""
    import requests  # its import takes longer than all that reads no address

    call_directly()
    try:
        return requests.get(url, headers=headers, timeout=30).ok  # busy machines answer late
    except requests.RequestException:
        return False


def _not_up(home: Path, part: str, why: str) -> LakegateError:
    log = log_file(home, part)
    lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
    end = "\n".join(f"    {line}" for line in lines) or "    (nothing)"
    return LakegateError(
        "PART_NOT_UP", f"{part} did not come up: {why}. Its log is {log} and ends with\n{end}"
    )


def _plain_environment() -> dict[str, str]:
    """Return our environment without AWS account and proxies: all stays on this machine."""
    ours = ("aws_", "lakegate_", "http_proxy", "https_proxy", "all_proxy")
    return {k: v for k, v in os.environ.items() if not k.lower().startswith(ours)}


def _record_file(home: Path, part: str) -> Path:
    return home / "run" / f"{part}.json"


def _record(home: Path, part: str) -> dict[str, Any]:
    try:
        return json.loads(_record_file(home, part).read_text())
    except (FileNotFoundError, ValueError):  # a full disk leaves an empty one
        return {}


def _mark(home: Path, part: str) -> str:
    return f"{home.resolve()}:{part}"


def _carries(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):  # it has ended, or is another user's
        return False


def _has_ended(process: psutil.Process) -> bool:
    """Return whether its last thread has ended, too: until then it holds its ports."""
    try:
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return not process.is_running() or (zombie and process.num_threads() == 1)
    except psutil.NoSuchProcess:
        return True


def _send(signal: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):  # it has ended by itself
        signal()


def _still_running(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return the processes that have not ended after that time.

    psutil.wait_procs also waits for a process that has ended and that its parent does not reap.
    """
    deadline = time.monotonic() + seconds
    while left := [process for process in processes if not _has_ended(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE)
    return left
