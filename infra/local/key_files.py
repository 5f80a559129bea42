"""The local stack's signing key and tokens: files that only their owner may open."""

from collections.abc import Mapping
from pathlib import Path

from infra.keys import NAMES, SIGNING_KEY


class KeyFiles:
    """A keyring in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self) -> Mapping[str, str]:
        """See Keyring.read."""
        files = {name: self._file(name) for name in NAMES}
        return {name: file.read_text() for name, file in files.items() if file.exists()}

    def write(self, name: str, text: str) -> None:
        """See Keyring.write."""
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._file(name)
        beside = file.with_suffix(".new")
        beside.touch(mode=0o600)
        beside.write_text(text)
        beside.replace(file)

    def _file(self, name: str) -> Path:
        return self._directory / ("nessie.pem" if name == SIGNING_KEY else f"{name}.token")
