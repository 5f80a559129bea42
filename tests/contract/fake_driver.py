"""A driver for tests with the Spark driver's pipe protocol; a run does what its argument says.

The first argument of a run is `succeed`, `fail`, `die`, `lose` (reports that it died, and hangs),
`leave` (succeeds, reports that the driver ends, and hangs), `hang` (until it is cancelled),
`ignore` (hangs and ignores a cancel) or `wait PATH` (until that file exists). The order is in the
run's stdout, with the names of the process's variables.
"""

import json
import os
import select
import sys
from pathlib import Path
from typing import Any


def say(message: dict[str, Any]) -> None:
    """Send a message to the service."""
    print(json.dumps(message), flush=True)


def run(what: str, arguments: list[str]) -> dict[str, Any]:
    """Do what a run's argument says and return how it ended."""
    failure = {"exit": 1, "details": "ValueError: " + "told to fail " * 30}
    if what == "die":
        os._exit(7)
    if what == "hang":
        sys.stdin.readline()
    if what == "ignore":
        sys.stdin.read()
    while what == "wait" and not Path(arguments[0]).exists():
        if select.select([sys.stdin], [], [], 0.01)[0]:
            sys.exit("the service is gone")
    ends = {
        "lose": {"exit": 1, "lost": "The Spark driver died: its JVM was killed by signal 9."},
        "leave": {"exit": 0, "details": "", "leaving": True},
        "fail": failure,
    }
    return ends.get(what, {"exit": 0, "details": ""})


def main() -> None:
    """Process orders until the input ends."""
    say({"ready": True})
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if "cancel" in order:
            continue
        seen = {**order, "pid": os.getpid(), "variables": sorted(os.environ)}
        Path(order["stdout"]).write_text(json.dumps(seen))
        say({"run": order["run"]})
        ended = run(order["arguments"][0], order["arguments"][1:])
        say({"run": order["run"], **ended})
        if "lost" in ended or "leaving" in ended:
            sys.stdin.read()


if __name__ == "__main__":
    main()
