"""Snowflake's SQL API as far as Lakegate uses it, strict about requests.

Snowflake documentation: "SQL API reference", "Authenticating to the server", "ALTER ICEBERG TABLE …
REFRESH". Undocumented behaviour is not invented here: an undocumented request is refused.
"""

import base64
import hashlib
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import flask
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from werkzeug.serving import make_server

_NAME = r'"(?:[^"]|"")+"'
_TEXT = r"'((?:[^'\\]|''|\\\\)+)'"
_REFRESH = re.compile(rf"ALTER ICEBERG TABLE ({_NAME}\.{_NAME}\.{_NAME}) REFRESH {_TEXT}")
_LONGEST_LIFE = 3600


@dataclass
class _Statement:
    requests: set[str]
    sql: str
    polls: int


@dataclass
class SnowflakeDouble:
    """One account with one user; `tables` maps each Iceberg table to the file that it reads.

    `polls` is the number of polls that find a statement still running. `faults` occur one by one:
    an HTTP status, or "lost" for a lost answer although the work is done; "none" is no fault. `ran`
    are the statements in the order of execution. With `hangs`, a statement is executed just before
    its time limit, and is reported as running until then. `ahead` is by how much its clock is
    ahead.
    """

    user: str = "MYORG-ACCOUNT1.LAKEGATE"
    key: Any = None
    tables: dict[str, str] = field(default_factory=dict)
    polls: int = 1
    faults: list[int | str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    address: str = ""
    hangs: bool = False
    ahead: timedelta = timedelta(0)
    _hanging: list[tuple[datetime, str]] = field(default_factory=list)
    _statements: dict[str, _Statement] = field(default_factory=dict)

    def now(self) -> datetime:
        """Return the time of its clock."""
        return datetime.now(UTC) + self.ahead

    def submit(self) -> flask.Response:
        """Answer POST /api/v2/statements."""
        query, body = flask.request.args, flask.request.get_json()
        request_id = str(uuid.UUID(query["requestId"]))
        assert set(query) <= {"requestId", "retry", "async"}
        assert 0 < body["timeout"] <= 60, "a statement must end before its message comes again"
        self.bodies.append(body)
        known = [h for h, s in self._statements.items() if request_id in s.requests]
        if not (known and query.get("retry") == "true"):
            known = [str(uuid.uuid4())]
            self._statements[known[0]] = _Statement({request_id}, body["statement"], self.polls)
            if self.hangs:
                last = self.now() + timedelta(seconds=body["timeout"] - 1)
                self._hanging.append((last, known[0]))
            elif error := self._carry_out(body["statement"]):
                return error
        if self.faults[:1] == ["lost"]:
            self.faults.pop(0)
            return _answer(504, message="the gateway waited in vain")
        return self._standing(known[0])

    def look(self, handle: str) -> flask.Response:
        """Answer GET /api/v2/statements/<handle>."""
        self._statements[handle].polls -= 1
        return self._standing(handle)

    def refusal(self) -> flask.Response | None:
        """Return the error of a request: its own, or the next fault."""
        self.asked.append(flask.request.method)
        self.go_on()
        headers = flask.request.headers
        assert headers["User-Agent"].startswith("lakegate/")
        assert headers["Accept"] == "application/json"
        assert headers["X-Snowflake-Authorization-Token-Type"] == "KEYPAIR_JWT"
        if not self.knows(headers["Authorization"].removeprefix("Bearer ")):
            return _answer(401, code="390144", message="JWT token is invalid.")
        match self.faults[:1]:
            case [int(status)]:
                self.faults.pop(0)
                return _answer(status, message="told to fail")
            case ["none"]:
                self.faults.pop(0)
        return None

    def go_on(self) -> None:
        """Execute the statement that hung until now."""
        due = [each for each in self._hanging if each[0] <= self.now()]
        for each in due:
            self._hanging.remove(each)
            self._carry_out(self._statements[each[1]].sql)

    def knows(self, token: str) -> bool:
        """Return whether a bearer token is the user's and valid now."""
        own_clock: Any = {"verify_exp": False, "verify_iat": False}
        try:
            claims = jwt.decode(
                token, self.key, algorithms=["RS256"], issuer=self._issuer(), options=own_clock
            )
        except jwt.InvalidTokenError:
            return False
        short = 0 < claims["exp"] - claims["iat"] <= _LONGEST_LIFE
        good = claims["iat"] <= self.now().timestamp() < claims["exp"]
        return short and good and claims["sub"] == self.user

    def _issuer(self) -> str:
        return f"{self.user}.{fingerprint(self.key)}"

    def _standing(self, handle: str) -> flask.Response:
        hangs = any(handle == each for _, each in self._hanging)
        done = self._statements[handle].polls <= 0 and not hangs
        code = "090001" if done else "333334"
        path = f"/api/v2/statements/{handle}"
        status = 200 if done else 202
        return _answer(status, code=code, statementHandle=handle, statementStatusUrl=path)

    def _carry_out(self, sql: str) -> flask.Response | None:
        self.ran.append(sql)
        found = _REFRESH.fullmatch(sql)
        if not found:
            return _answer(422, code="001003", message=f"SQL compilation error: {sql}")
        table, path = found[1], found[2].replace("''", "'").replace("\\\\", "\\")
        if table not in self.tables:
            message = f"Object {table} does not exist or not authorized."
            return _answer(422, code="002003", message=message)
        if path.startswith(("/", "s3:")) or not path.endswith(".json"):
            return _answer(422, code="094020", message="not relative to the external volume")
        self.tables[table] = path
        return None


@contextmanager
def running(double: SnowflakeDouble) -> Iterator[SnowflakeDouble]:
    """Yield the double, answering at its address."""
    app = flask.Flask("snowflake")
    app.before_request(double.refusal)
    app.post("/api/v2/statements")(double.submit)
    app.get("/api/v2/statements/<handle>")(double.look)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    double.address = f"http://127.0.0.1:{server.port}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()


def fingerprint(key: RSAPublicKey) -> str:
    """Return the base64 of the public key's SHA-256.

    It equals `openssl rsa -pubin -outform DER | openssl dgst -sha256 -binary | base64`.
    """
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode()


def _answer(status: int, **document: str) -> flask.Response:
    answer = flask.jsonify(document)
    answer.status_code = status
    return answer
