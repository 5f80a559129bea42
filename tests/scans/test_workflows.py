"""The action, the workflow and the example are scanned by zizmor."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ZIZMOR = ROOT / ".venv-scan" / "bin" / "zizmor"


def test_zizmor_finds_nothing() -> None:
    """Foreign actions are pinned by commit, rights are the least, no value becomes code."""
    files = ["action.yml", ".github/workflows/release.yml", "docs/examples/github-actions.yml"]
    options = ["--offline", "--persona", "pedantic", "--strict-collection"]
    done = subprocess.run(
        [ZIZMOR, *options, *files], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert not done.returncode, done.stdout + done.stderr
