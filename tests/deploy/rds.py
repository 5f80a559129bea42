"""Amazon RDS over real PostgreSQL servers, as far as the runbook of a restoration calls it.

It is as strict as RDS where a runbook can be wrong (Amazon RDS User Guide, "DB instance status" and
"Renaming a DB instance"): a change takes a while, in which an instance takes no other one and has
its old name; a name in use is refused; a restored instance has its snapshot's data and passwords.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tests.postgres import Postgres, Server

_OFTEN = 2  # so many requests see a change that is not done
Request = Mapping[str, str]


class Refused(Exception):
    """A request that RDS refuses, by its code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Instance:
    """A database instance, with the changes that are not done yet."""

    name: str
    server: Server
    asked: int = 0
    pending: dict[str, str] = field(default_factory=dict)
    is_made: bool = False

    @property
    def status(self) -> str:
        """Return the status that RDS describes."""
        if not self.is_made:
            return "creating"
        return "modifying" if self.pending else "available"


class Rds:
    """The instances and snapshots of an account."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._instances: list[Instance] = []
        self._snapshots: dict[str, Path] = {}
        self._lock = Lock()

    def create(self, name: str, password: str) -> None:
        """Start an instance with an empty database."""
        server = self._postgres.server(name, password)
        server.start()
        self._instances.append(Instance(name, server, is_made=True))

    def snapshot(self, name: str, snapshot: str, password: str) -> None:
        """Back an instance up while it runs, as RDS does each day."""
        self._snapshots[snapshot] = backup = self._postgres.folder / f"of-{snapshot}"
        self.server(name).back_up(password, backup)

    def server(self, name: str) -> Server:
        """Return the server to which an instance's address leads."""
        return self._named(name).server

    def names(self) -> list[str]:
        """Return the instances' names, in the order in which they were made."""
        return [each.name for each in self._instances]

    def answer(self, asked: Request) -> str:
        """Return the XML of an action's result. Raises Refused."""
        actions: Mapping[str, Callable[[Request], Instance]] = {
            "DescribeDBInstances": self._describe,
            "RestoreDBInstanceFromDBSnapshot": self._restore,
            "ModifyDBInstance": self._modify,
        }
        with self._lock:
            described = _xml(actions[asked["Action"]](asked))
        name = asked["Action"]
        listed = f"<DBInstances>{described}</DBInstances>" if "Describe" in name else described
        return f"<{name}Response><{name}Result>{listed}</{name}Result></{name}Response>"

    def stop(self) -> None:
        """Stop all servers."""
        for each in self._instances:
            each.server.stop()

    def _named(self, name: str) -> Instance:
        found = next((each for each in self._instances if each.name == name), None)
        if not found:
            raise Refused("DBInstanceNotFound")
        return found

    def _describe(self, asked: Request) -> Instance:
        for each in self._instances:
            each.asked += 1
            if each.asked >= _OFTEN:
                self._finish(each)
        return self._named(asked["DBInstanceIdentifier"])

    def _finish(self, instance: Instance) -> None:
        if password := instance.pending.pop("MasterUserPassword", ""):
            instance.server.stop()
            instance.server.change_password(password)
            instance.server.start()
        instance.name = instance.pending.pop("NewDBInstanceIdentifier", instance.name)
        instance.pending.clear()
        instance.is_made = True

    def _restore(self, asked: Request) -> Instance:
        name = self._free(asked["DBInstanceIdentifier"])
        if asked["DBSnapshotIdentifier"] not in self._snapshots:
            raise Refused("DBSnapshotNotFound")
        kept = self._snapshots[asked["DBSnapshotIdentifier"]]
        server = self._postgres.of_backup(kept, name)
        server.start()
        self._instances.append(made := Instance(name, server))
        return made

    def _modify(self, asked: Request) -> Instance:
        found = self._named(asked["DBInstanceIdentifier"])
        if found.status != "available":
            raise Refused("InvalidDBInstanceState")
        if new := asked.get("NewDBInstanceIdentifier"):
            self._free(new)
        found.asked, found.pending = 0, dict(asked)
        return found

    def _free(self, name: str) -> str:
        if name in self.names():
            raise Refused("DBInstanceAlreadyExists")
        return name


def _xml(instance: Instance) -> str:
    pending = "".join(f"<{key}>{escape(text)}</{key}>" for key, text in instance.pending.items())
    return (
        f"<DBInstance><DBInstanceIdentifier>{instance.name}</DBInstanceIdentifier>"
        f"<DBInstanceStatus>{instance.status}</DBInstanceStatus>"
        f"<PendingModifiedValues>{pending}</PendingModifiedValues></DBInstance>"
    )


@contextmanager
def served(rds: Rds) -> Iterator[str]:
    """Yield the address at which RDS answers; stop its servers at the end."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer a request of RDS's query protocol."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                status, text = 200, rds.answer(dict(parse_qsl(body)))
            except Refused as error:
                code = f"<Error><Code>{error.code}</Code><Message>refused</Message></Error>"
                status, text = 400, f"<ErrorResponse>{code}</ErrorResponse>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        rds.stop()
