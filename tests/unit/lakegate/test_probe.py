"""The judgement of what a probe found."""

from typing import Any

import pytest

from lakegate.probe import problems

GOOD: dict[str, Any] = {
    "python": {"version": "3.11.9", "packages": {"boto3": "1.40"}},
    "catalog": {"class": "org.apache.iceberg.rest.RESTCatalog"},
}


def test_a_sound_runtime_has_no_problem() -> None:
    """Findings without errors, with Python 3.11 and boto3, are sound."""
    assert list(problems(GOOD)) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"python": {"version": "3.9.16", "packages": {"boto3": "1"}}}, "Python 3.9.16"),
        ({"python": {"version": "3.12.1", "packages": {}}}, "no boto3"),
        ({"catalog": {"error": "Permanent: WRONG_CATALOG: …"}}, "WRONG_CATALOG"),
    ],
)
def test_what_makes_every_job_fail_is_a_problem(wrong: dict[str, Any], told: str) -> None:
    """An old Python, a missing package and a failed measurement are named."""
    (problem,) = problems({**GOOD, **wrong})
    assert told in problem
