"""The judgement of what a probe found."""

from typing import Any

import pytest

from lakegate.probe import DRIVER, EXECUTOR, problems

VERSIONS = {"python": "3.11", "numpy": "2.4.6", "pyarrow": "26.0.1"}
LIBRARIES = {"python": "3.11.9", "numpy": "2.4.6", "pyarrow": "26.0.1", "seconds": 0.3}
GOOD: dict[str, Any] = {
    "python": {"version": "3.11.9", "packages": {"boto3": "1.40"}},
    "catalog": {"class": "org.apache.iceberg.rest.RESTCatalog"},
    DRIVER: LIBRARIES,
    EXECUTOR: LIBRARIES,
}


def test_a_sound_runtime_has_no_problem() -> None:
    """Findings without errors, with the right Python, boto3 and the job's libraries, are sound."""
    assert list(problems(GOOD, VERSIONS)) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"python": {"version": "3.9.16", "packages": {"boto3": "1"}}}, "Python 3.9.16"),
        ({"python": {"version": "3.13.1", "packages": {"boto3": "1"}}}, "are for 3.11"),
        ({"python": {"version": "3.11.1", "packages": {}}}, "no boto3"),
        ({"catalog": {"error": "Permanent: WRONG_CATALOG: …"}}, "WRONG_CATALOG"),
    ],
)
def test_what_makes_every_job_fail_is_a_problem(wrong: dict[str, Any], told: str) -> None:
    """Another Python, a missing package and a failed measurement are named."""
    (problem,) = problems({**GOOD, **wrong}, VERSIONS)
    assert told in problem


@pytest.mark.parametrize("place", [DRIVER, EXECUTOR])
@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"error": "ImportError: wrong ELF class"}, "wrong ELF class"),
        ({**LIBRARIES, "pyarrow": "15.0.2"}, "pyarrow is 15.0.2, not 26.0.1"),
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
