"""Dependencies are pinned by their content."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOCKS = sorted((ROOT / "requirements.txt", *ROOT.glob("requirements/*.txt")))
_PINNED = re.compile(
    r"[A-Za-z0-9._-]+(\[[a-z0-9,_-]+\])?==[^ ;]+( *;[^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_requirement_has_its_hashes(lock: Path) -> None:
    """Each line of a lock file has one version and the digests of its files, and no server."""
    text = re.sub(r"^ *#.*\n", "", lock.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    requirements = list(filter(str.strip, text.splitlines()))
    assert requirements
    for line in requirements:
        assert _PINNED.fullmatch(line), line


def test_every_node_package_has_its_digest() -> None:
    """Each package of the lock file has a digest and no address."""
    lock = json.loads((ROOT / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert packages
    for name, each in packages.items():
        assert each.get("integrity", "").startswith("sha512-"), name
        assert "resolved" not in each, name
