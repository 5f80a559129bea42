"""The probe: a job run that measures its runtime, and the judgement of its findings."""

from collections.abc import Iterator, Mapping
from typing import Any

FORMAT = "lakegate-probe-1"
DEFAULT, LOCAL_MASTER = "default", "local[*]"
# Those of the libraries that the job takes along by which the others are chosen.
LIBRARIES = ("boto3", "botocore", "numpy", "pyarrow")
# The findings about them on each kind of worker.
DRIVER, EXECUTOR = "libraries_of_driver", "libraries_of_executor"


def probe_key(probe: str) -> str:
    """Return the key of a probe's findings in the lake bucket; they expire after a day."""
    return f"staging/{probe}/findings.json"


def problems(findings: Mapping[str, Any], versions: Mapping[str, str]) -> Iterator[str]:
    """Yield what would make every job fail on this runtime, each with a remedy.

    `findings` maps each measurement to its values, or to `error` if it failed. `versions` are those
    of the libraries that the job takes along, and of the `python` that can load them.
    """
    for name, values in findings.items():
        if isinstance(values, Mapping) and "error" in values and name not in (DRIVER, EXECUTOR):
            yield f"{name} could not be measured: {values['error']}"
    python = findings.get("python", {})
    wanted = versions["python"]
    if not f"{python.get('version', wanted)}.".startswith(f"{wanted}."):
        yield (
            f"the runtime has Python {python['version']}, and the job's libraries are for {wanted}:"
            " choose another EmrRelease"
        )
    for name in (DRIVER, EXECUTOR):
        yield from _library_differences(name, findings.get(name, {}), versions)


def _library_differences(
    name: str, facts: Mapping[str, Any], versions: Mapping[str, str]
) -> Iterator[str]:
    """Yield how the libraries on a worker differ from those that the job takes along."""
    wrong = [
        f"{package} is {facts.get(package, 'missing')}, not {versions[package]}"
        for package in LIBRARIES
        if facts.get(package) != versions[package]
    ]
    if wrong:
        place = name.removeprefix("libraries_of_")
        yield (
            f"the {place} does not have the job's libraries: {facts.get('error', '; '.join(wrong))}"
            f"\n    They are for Python {versions['python']} and one kind of processor: let"
            " Architecture in stages/STAGE.yml be the application's, and deploy again."
        )
