"""Dependencies are pinned by their content, and `make audit` does not pass without answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra.vulnerabilities import audit

ROOT = Path(__file__).parents[3]
LOCKS = sorted(ROOT.glob("requirements*.txt"))
GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}
_PINNED = re.compile(
    r"[A-Za-z0-9._-]+(\[[a-z0-9,_-]+\])?==[^ ;]+( *;[^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
)
NPM: dict[str, Any] = {"metadata": {"dependencies": {"total": 9}}, "vulnerabilities": {}}


def audited(tmp_path: Path, python: Any, node: Any) -> int:
    """Return the exit code if both tools print this."""
    (tmp_path / "requirements.txt").touch()
    printed = {"pip-audit": python, "npm": node}
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in printed.items()}
    return audit(tmp_path, lambda command: texts[Path(command[0]).name])


@pytest.mark.parametrize(
    ("packages", "node", "code"),
    [
        ([GOOD], NPM, 0),
        ([GOOD, BAD], NPM, 1),
        ([BAD, SKIPPED], "", 1),
        ([GOOD, SKIPPED], NPM, 2),
        ([GOOD], {"message": "405 Method Not Allowed", "statusCode": 405}, 2),
        ([GOOD], "", 2),
        ([GOOD], NPM | {"vulnerabilities": {"x": {"name": "x", "severity": "high"}}}, 1),
    ],
)
def test_only_what_was_looked_up_passes(
    tmp_path: Path, packages: list[Any], node: Any, code: int
) -> None:
    """Vulnerabilities and packages without an answer each have an exit code."""
    assert audited(tmp_path, {"dependencies": packages}, node) == code


@pytest.mark.parametrize("printed", ["", "[]", "no network", "{}"])
def test_no_answer_is_no_pass(
    tmp_path: Path, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an answer of the database the command reports it, with its own exit code."""
    assert audited(tmp_path, printed, NPM) == 2
    assert "NOT AUDITED" in capsys.readouterr().out


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
