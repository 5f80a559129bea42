"""The judgement of what a probe found."""

from typing import Any

import pytest

from lakegate.job.probe import DRIVER, EXECUTOR, problems

PINNED = {"boto3": "1.44.5", "botocore": "1.44.5", "numpy": "2.4.6", "pyarrow": "26.0.1"}
VERSIONS = {"python": "3.11", "six": "1.17.0", **PINNED}
LIBRARIES = {"python": "3.11.9", **PINNED, "seconds": 0.3}
GOOD: dict[str, Any] = {
    "python": {"version": "3.11.9", "packages": {"boto3": "1.26.0"}},
    "catalog": {"class": "org.apache.iceberg.rest.RESTCatalog"},
    DRIVER: LIBRARIES,
    EXECUTOR: LIBRARIES,
}


def test_a_sound_runtime_has_no_problem() -> None:
    """Findings without errors, with the right Python and the job's libraries, are sound.

    The image's own boto3 does not matter, as the job takes one along.
    """
    assert list(problems(GOOD, VERSIONS)) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"python": {"version": "3.9.16", "packages": {}}}, "Python 3.9.16"),
        ({"python": {"version": "3.13.1", "packages": {}}}, "are for 3.11"),
        ({"catalog": {"error": "Permanent: WRONG_CATALOG: …"}}, "WRONG_CATALOG"),
    ],
)
def test_what_makes_every_job_fail_is_a_problem(wrong: dict[str, Any], told: str) -> None:
    """Another Python and a failed measurement are named."""
    (problem,) = problems({**GOOD, **wrong}, VERSIONS)
    assert told in problem


@pytest.mark.parametrize("place", [DRIVER, EXECUTOR])
@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"error": "ImportError: wrong ELF class"}, "wrong ELF class"),
        ({**LIBRARIES, "pyarrow": "15.0.2"}, "pyarrow is 15.0.2, not 26.0.1"),
        ({**LIBRARIES, "boto3": "1.26.0"}, "boto3 is 1.26.0, not 1.44.5"),
        ({}, "numpy is missing, not 2.4.6"),
    ],
)
def test_a_worker_without_the_job_s_libraries_is_a_problem(
    place: str, found: dict[str, Any], told: str
) -> None:
    """The worker is named with what it has, and a second line says what to do."""
    (problem,) = problems({**GOOD, place: found}, VERSIONS)
    first, second = problem.splitlines()
    assert place.removeprefix("libraries_of_") in first
    assert told in first
    assert "Architecture" in second
