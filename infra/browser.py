"""A Chromium for the tests that look at the page: the machine's own, or one that is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from infra.setup import Failed

NAMES = ("chromium", "chromium-browser", "google-chrome")
_ADVICE = "install Chromium (Debian, Ubuntu: `apt-get install chromium`), then try again"

# Runs one command to its end; the answer is whether it succeeded.
Run = Callable[[Sequence[str]], bool]
Which = Callable[[str], str | None]


def found(which: Which = shutil.which) -> str:
    """The path of this machine's Chromium; "" where there is none, and playwright's own is used."""
    return next((path for name in NAMES if (path := which(name))), "")


def ensure(run: Run, which: Which = shutil.which, *, is_root: bool) -> str:
    """The Chromium to use, installed where there was none; "" is playwright's own.

    Raises Failed where there is none to be had.
    """
    if path := found(which):
        return path
    if is_root and which("apt-get") and (_by_apt(run) and (path := found(which))):
        return path
    if run([sys.executable, "-m", "playwright", "install", "chromium"]):
        return ""
    raise Failed(f"No browser was found, nor could one be fetched: {_ADVICE}")


def _by_apt(run: Run) -> bool:
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    return run(install) or (run(["apt-get", "update", "-qq"]) and run(install))


def _run(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def main() -> int:
    """See that there is a browser, and answer the exit status."""
    try:
        path = ensure(_run, is_root=os.geteuid() == 0)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"The browser of the tests: {path or 'one of playwright'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
