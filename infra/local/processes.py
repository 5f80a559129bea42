"""The local stack's processes: started apart from the terminal, found again, and stopped for good.

Each has a record under the home directory: its pid, the kernel's word for when it began, and what
was run. A pid alone could by now be a stranger's; with its beginning it names one process for ever.
"""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lakegate.errors import LakegateError

_MARK = "LAKEGATE_PART"
_PROC = Path("/proc")
_PAUSE = 0.05
_SECONDS_TO_DIE = 10.0
_LAST_LINES = 20


@dataclass(frozen=True)
class Command:
    """A part of the stack and how to run it; `env` comes on top of the plain environment."""

    part: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The same for the same command, and for no other."""
        told = [self.argv, str(self.cwd), sorted(self.env.items())]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Record:
    """A process that was started: `began` and `fingerprint` tell it from any other.

    `began` is "" of one that had ended before it could be asked.
    """

    pid: int
    began: str
    fingerprint: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return self.began != "" and _began(self.pid) == self.began


def log_file(home: Path, part: str) -> Path:
    """Where a part's output goes."""
    return home / "logs" / f"{part}.log"


def running(home: Path, part: str) -> Record | None:
    """The part's process, or None where none is running."""
    try:
        record = Record(**json.loads(_record_file(home, part).read_text()))
    except FileNotFoundError:
        return None
    return record if record.alive else None


def is_running(home: Path, command: Command) -> bool:
    """Whether the part runs, and as this command says."""
    found = running(home, command.part)
    return found is not None and found.fingerprint == command.fingerprint


def start(home: Path, command: Command) -> None:
    """Start the part as this command says, in place of whatever of it still runs."""
    stop(home, command.part)
    log = log_file(home, command.part)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    environment = {**_plain_environment(), **command.env, _MARK: _mark(home, command.part)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is not for it
        )
    record = Record(process.pid, _began(process.pid), command.fingerprint)
    file = _record_file(home, command.part)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(record)))


def stop(home: Path, part: str, grace: float = 20.0) -> bool:
    """Stop a part and everything it started; False where nothing of it was left.

    It is asked first and has `grace` seconds to end; what is left then is killed.
    """
    found = running(home, part)
    if found:
        _send(found.pid, signal.SIGTERM)
        _wait_for_end(found, grace)
    left = _marked(_mark(home, part))
    for pid in left:
        _send(pid, signal.SIGKILL)
    _wait_for_none(_mark(home, part), part)
    _record_file(home, part).unlink(missing_ok=True)
    return bool(found or left)


def wait_until(
    home: Path, part: str, answers: Callable[[], bool], timeout: float, pause: float = 0.1
) -> None:
    """Return when the part answers.

    Raises LakegateError, with the end of the part's log, when it dies or `timeout` seconds pass.
    """
    deadline = time.monotonic() + timeout
    while not answers():
        if running(home, part) is None:
            raise _not_up(home, part, "it ended")
        if time.monotonic() > deadline:
            raise _not_up(home, part, f"it did not answer within {timeout:.0f} seconds")
        time.sleep(pause)


def _not_up(home: Path, part: str, why: str) -> LakegateError:
    log = log_file(home, part)
    lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
    end = "\n".join(f"    {line}" for line in lines) or "    (nothing)"
    return LakegateError(
        "PART_NOT_UP", f"{part} did not come up: {why}. Its log is {log} and ends with\n{end}"
    )


def _plain_environment() -> dict[str, str]:
    """This process's environment without its AWS account and proxies: all stays on the machine."""
    ours = ("aws_", "lakegate_", "http_proxy", "https_proxy", "all_proxy")
    return {k: v for k, v in os.environ.items() if not k.lower().startswith(ours)}


def _record_file(home: Path, part: str) -> Path:
    return home / "run" / f"{part}.json"


def _mark(home: Path, part: str) -> str:
    return f"{home.resolve()}:{part}"


def _wait_for_end(record: Record, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while record.alive and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _wait_for_none(mark: str, part: str, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while left := _marked(mark):
        if time.monotonic() > deadline:
            raise LakegateError("PART_NOT_STOPPED", f"{part} does not end: processes {left}")
        time.sleep(_PAUSE)


def _send(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return  # it ended by itself meanwhile


def _marked(mark: str) -> list[int]:
    """All living processes that carry the mark: what was started, and all that these started."""
    wanted = f"{_MARK}={mark}".encode()
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if wanted in _environment(pid) and _began(pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or not ours to look at
        return []


def _began(pid: int) -> str:
    """When the process began, in the kernel's ticks since the machine's start; "" when it ended.

    One that was killed has ended when its last thread has: until then it holds its ports.
    """
    deadline = time.monotonic() + _SECONDS_TO_DIE
    while True:
        _reap(pid)
        try:
            stat = (_PROC / str(pid) / "stat").read_text()
        except OSError:
            return ""
        fields = stat.rpartition(")")[2].split()
        if fields[0] != "Z":
            return f"{_boot()}:{fields[19]}"
        threads = int(fields[17])
        if threads < 2 or time.monotonic() > deadline:
            return ""
        time.sleep(_PAUSE)


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _reap(pid: int) -> None:
    """Let a child of ours that ended be gone; another's child is not ours to wait for."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except (ChildProcessError, OSError):
        return
