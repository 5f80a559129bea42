"""A search for secrets in files, answers and command lines."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from lakegate.nessie_tokens import Keys

# Findings by place: a file's path, a call, a process.
Place = tuple[str, bytes]


def secrets_of(keys: Iterable[Keys], others: Mapping[str, str]) -> dict[str, bytes]:
    """Return every text that reveals a secret, by a harmless name.

    A token's signature is enough, because its claims can be guessed, and so is any line of the
    private key.
    """
    found = {name: text.encode() for name, text in others.items()}
    for nth, each in enumerate(keys):
        for role, token in each.tokens.items():
            found[f"signature of the {role}'s token {nth}"] = token.rpartition(".")[2].encode()
        for number, line in enumerate(each.signing_key.splitlines()[1:-1]):
            found[f"line {number} of the signing key {nth}"] = line.encode()
    return found


def leaks(places: Iterable[Place], secrets: Mapping[str, bytes]) -> list[str]:
    """Return the secrets that were found, by place."""
    return [
        f"{where}: {name}"
        for where, content in places
        for name, secret in secrets.items()
        if secret in content
    ]


def files(directory: Path) -> Iterator[Place]:
    """Yield every file below a directory and the files packed in it, except deleted ones.

    Copies of an archive are unpacked once: each worker of a function has one of its code.
    """
    unpacked: set[bytes] = set()
    for folder, _, names in os.walk(directory):
        for path in (Path(folder, name) for name in names):
            try:
                content = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:
                continue
            name, digest = str(path.relative_to(directory)), sha256(content).digest()
            yield name, content
            if digest not in unpacked:
                unpacked.add(digest)
                yield from _unpacked(name, content)


def command_lines(mark: str) -> Iterator[Place]:
    """Yield the command line of every process that has `mark` in its environment."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                yield f"process {process.name}", (process / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue


def _unpacked(name: str, content: bytes) -> Iterator[Place]:
    if content.startswith(b"\x1f\x8b"):
        try:
            yield f"{name} (unpacked)", gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return  # a corrupt archive of some test
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield f"{name}/{member}", archive.read(member)
