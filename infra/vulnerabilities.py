"""`make audit`: find known vulnerabilities in the pinned packages.

pip-audit and npm ask databases on the internet. If these do not answer, pip-audit skips packages
and reports success: here each package that was not looked up counts. The exit code is 0 if all
packages are free of known vulnerabilities, 1 if there are vulnerabilities, and 2 if there are none
but some packages could not be looked up.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_TOOLS = ".venv-deploy/bin"
_PIP_AUDIT = ["--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json"]
_NPM_AUDIT = ["audit", "--json", "--package-lock-only"]
_SHOWN = 3

Ask = Callable[[list[str]], str]


@dataclass(frozen=True)
class Answer:
    """The result for one lock file: how many packages, which are vulnerable, which are unknown."""

    file: str
    packages: int = 0
    vulnerable: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def audit(root: Path, ask: Ask) -> int:
    """Look every lock file up, print the results, and return the exit code.

    `ask` runs a command in the project's folder and returns its output.
    """
    answers = [
        of_pip(file.name, ask([f"{_TOOLS}/pip-audit", *_PIP_AUDIT, "--requirement", file.name]))
        for file in sorted(root.glob("requirements*.txt"))
    ]
    answers.append(of_npm("package-lock.json", ask([f"{_TOOLS}/npm", *_NPM_AUDIT])))
    for answer in answers:
        print(_line(answer))
    if any(answer.vulnerable for answer in answers):
        return 1
    if not any(answer.unknown for answer in answers):
        return 0
    print("NOT AUDITED: some packages could not be looked up. Run it where the databases answer.")
    return 2


def of_pip(file: str, printed: str) -> Answer:
    """Return the result in pip-audit's JSON for a requirements file."""
    try:
        packages = json.loads(printed)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Answer(file, unknown=("pip-audit gave no answer",))
    found = [
        f"{p['name']} {p['version']}: {v['id']}, fixed in {', '.join(v['fix_versions']) or 'none'}"
        for p in packages
        for v in p.get("vulns", ())
    ]
    skipped = [p["name"] for p in packages if "vulns" not in p]
    return Answer(file, len(packages), tuple(found), tuple(skipped))


def of_npm(file: str, printed: str) -> Answer:
    """Return the result in npm's JSON for the lock file (audit report, version 2)."""
    try:
        document = json.loads(printed)
        packages = document["metadata"]["dependencies"]["total"]
        listed = document["vulnerabilities"].values()
    except (ValueError, KeyError, TypeError, AttributeError):
        return Answer(file, unknown=("npm gave no answer",))
    return Answer(file, packages, tuple(f"{p['name']}: {p['severity']}" for p in listed))


def _line(answer: Answer) -> str:
    if answer.vulnerable:
        return f"{answer.file}: VULNERABLE\n  " + "\n  ".join(answer.vulnerable)
    if answer.unknown:
        more = len(answer.unknown) - _SHOWN
        named = ", ".join(answer.unknown[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        return f"{answer.file}: could not be looked up: {named}"
    return f"{answer.file}: no known vulnerabilities in {answer.packages:,} packages"


def _ask(command: list[str]) -> str:
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(audit(_ROOT, _ask))
