"""Find or install a Chromium for the tests of the quality page."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from infra.setup import Failed

NAMES = ("chromium", "chromium-browser", "google-chrome")
_ADVICE = "install Chromium (Debian, Ubuntu: `apt-get install chromium`), then try again"

# Runs one command to its end and returns whether it succeeded.
Run = Callable[[Sequence[str]], bool]
Which = Callable[[str], str | None]


def found(which: Which = shutil.which) -> str:
    """Return the path of this machine's Chromium, "" if there is none: playwright's serves."""
    return next((path for name in NAMES if (path := which(name))), "")


def ensure(run: Run, which: Which = shutil.which, *, is_root: bool) -> str:
    """Return the Chromium to use, after installing it if there was none; "" is playwright's own.

    Raises Failed if none can be installed.
    """
    if path := found(which):
        return path
    if is_root and which("apt-get") and (_by_apt(run) and (path := found(which))):
        return path
    if run([sys.executable, "-m", "playwright", "install", "chromium"]):
        return ""
    raise Failed(f"No browser was found and none could be installed: {_ADVICE}")


def _by_apt(run: Run) -> bool:
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    return run(install) or (run(["apt-get", "update", "-qq"]) and run(install))


def _run(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def main() -> int:
    """Find or install a browser and return the exit status."""
    try:
        path = ensure(_run, is_root=os.geteuid() == 0)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"The browser of the tests: {path or 'one of playwright'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
