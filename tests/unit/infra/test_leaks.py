"""The finder of leaked secrets."""

import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lakegate.nessie_tokens import Keys
from tests.leaks import Place, command_lines, files, leaks, secrets_of
from tests.unit.lakegate.test_nessie_tokens import made


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member.txt", text)
    return file.getvalue()


@pytest.mark.parametrize(
    "written",
    [
        str.encode,
        lambda text: json.dumps({"line": f"Bearer {text}"}).encode(),
        lambda text: gzip.compress(text.encode()),
        zipped,
        lambda text: text.rpartition(".")[2].encode(),
    ],
)
def test_a_token_in_a_file_is_found(tmp_path: Path, written: object) -> None:
    """A plain, quoted or packed token or its signature is found, with the file and the role."""
    assert callable(written)
    (tmp_path / "innocent.log").write_bytes(b"nothing to see here")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "some.log").write_bytes(written(made()["job"]))

    found = leaks(files(tmp_path), secrets_of([Keys.of(made())], {}))

    assert len(found) == 1
    assert "some.log" in found[0]
    assert "the job's token" in found[0]


def test_a_line_of_the_key_and_any_other_secret_are_found() -> None:
    """A part of the private key and any other secret are leaks, too."""
    held = Keys.of(made())
    line = held.signing_key.splitlines()[3]
    places: list[Place] = [("a", line.encode()), ("b", b'"xoxb-1"')]

    assert leaks(places, secrets_of([held], {"Slack's token": "xoxb-1"})) == [
        "a: line 2 of the signing key 0",
        "b: Slack's token",
    ]


def test_a_token_on_a_command_line_is_found() -> None:
    """A token in the arguments of our process is found: every user can read it."""
    token, mark = made()["reader"], f"MARK={os.getpid()}"
    command = [sys.executable, "-c", "input()", token]
    environment = {**os.environ, "MARK": str(os.getpid())}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        found = leaks(command_lines(mark), secrets_of([Keys.of(made())], {}))
        process.communicate(b"\n")

    assert found == [f"process {process.pid}: signature of the reader's token 0"]
