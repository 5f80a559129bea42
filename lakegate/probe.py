"""The probe: a job run that measures its runtime, and the judgement of its findings."""

from collections.abc import Iterator, Mapping
from typing import Any

FORMAT = "lakegate-probe-1"
DEFAULT, LOCAL_MASTER = "default", "local[*]"
_OLDEST_PYTHON = (3, 11)


def probe_key(probe: str) -> str:
    """Return the key of a probe's findings in the lake bucket; they expire after a day."""
    return f"staging/{probe}/findings.json"


def problems(findings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what would make every job fail on this runtime, each with a remedy.

    `findings` maps each measurement to its values, or to `error` if it failed.
    """
    for name, values in findings.items():
        if isinstance(values, Mapping) and "error" in values:
            yield f"{name} could not be measured: {values['error']}"
    version = findings.get("python", {}).get("version", "3.11")
    if tuple(map(int, version.split(".")[:2])) < _OLDEST_PYTHON:
        yield f"the runtime has Python {version}, and jobs need 3.11: choose another EmrRelease"
    if "boto3" not in findings.get("python", {}).get("packages", {"boto3": ""}):
        yield "the runtime has no boto3, which jobs need: choose another EmrRelease"
