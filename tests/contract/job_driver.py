"""A driver for the EMR stand-in whose runs end by a file, like the jobs of FakeJobs.

The file has the job run's name and contains its exit code; the job's argument names the directory
as its lake bucket.
"""

import json
import select
import sys
from pathlib import Path


def exit_code(argument: str) -> int:
    """Return the exit code once there is one."""
    told = json.loads(argument)
    spec = told.get("shared_run", told)
    name = spec["name"] if spec is not told else f"{spec['ingestion']}-{spec['attempt']}"
    file = Path(spec["lake_bucket"]) / name
    while not file.exists() or not file.read_text():  # it exists before it is written
        if select.select([sys.stdin], [], [], 0.01)[0]:
            return 143  # cancelled, or the service is gone
    return int(file.read_text())


def main() -> None:
    """Process orders until the input ends."""
    print(json.dumps({"ready": True}), flush=True)
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if "cancel" not in order:
            print(json.dumps({"run": order["run"]}), flush=True)
            end = {"exit": exit_code(order["arguments"][0]), "details": "the test asked to fail"}
            print(json.dumps({"run": order["run"], **end}), flush=True)


if __name__ == "__main__":
    main()
