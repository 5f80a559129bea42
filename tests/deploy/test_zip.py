"""The functions' zip, with the libraries of this machine."""

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from infra import lambda_python, package
from tests.deploy.bare import ROOT

pytestmark = pytest.mark.stack

_PYTHON = ROOT / lambda_python.ENVIRONMENT / "bin" / "python"  # which runs the functions here


@pytest.fixture(scope="module")
def zipped() -> Path:
    """Return the zip that the local stack runs."""
    return package.build_here(ROOT, print).lambda_zip


def test_the_zip_fits_lambda(zipped: Path) -> None:
    """The zip is small enough, and its libraries need no newer glibc than Lambda's."""
    with zipfile.ZipFile(zipped) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        libraries = {n: archive.read(n) for n in archive.namelist() if ".so" in n}
    needed = {
        name: max(map(int, re.findall(rb"GLIBC_2\.(\d+)", library)))
        for name, library in libraries.items()
    }

    assert size < 250_000_000
    assert needed
    assert max(needed.values()) <= 34, needed


def test_the_zip_has_all_that_the_functions_import(zipped: Path, tmp_path: Path) -> None:
    """The functions import only Python itself and the zip, boto3 included."""
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(tmp_path)
    modules = [f"functions.{file.stem}" for file in (tmp_path / "functions").glob("*.py")]
    code = f"""
import importlib, json, sys
sys.path.insert(0, {str(tmp_path)!r})
for name in {modules!r}:
    importlib.import_module(name)
files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
print(json.dumps([f.rpartition("site-packages/")[2] for f in files if "site-packages/" in f]))
"""
    run = subprocess.run(
        [_PYTHON, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    elsewhere = {file.split("/")[0] for file in json.loads(run.stdout)}

    assert elsewhere <= {"_distutils_hack", "_virtualenv.py"}
