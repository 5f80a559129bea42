"""What a job run is told arrives as it was sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject

SPEC = JobSpec(
    ingestion="a" * 32,
    attempt=2,
    landed=LandedObject("landing", "nyc/flights/Flüge 1+1.parquet", "v1", "e1", 10),
    table="nyc.flights",
    branch="ingest/nyc.flights/x",
    base_hash="b" * 64,
    lake_bucket="lake",
    contract_key="contracts/nyc.flights.yaml",
    contract_version="c1",
    report_key="reports/nyc.flights/x/2.json",
    nessie_uri="http://nessie:19120",
    token_secret="lakegate/nessie/job",
)


@given(st.builds(JobSpec))
def test_a_spec_survives_the_way(spec: JobSpec) -> None:
    """Whatever characters a spec has, the job reads the very same one."""
    assert JobSpec.from_argument(spec.to_argument()) == spec


def test_an_argument_is_one_line_of_ascii() -> None:
    """No shell, log or API on the way can change an argument by its encoding."""
    argument = SPEC.to_argument()
    assert argument.isascii()
    assert argument.isprintable()


def test_a_newer_specs_fields_are_ignored() -> None:
    """A job of yesterday understands a spec of today that says more."""
    document = json.loads(SPEC.to_argument())
    document["landed"]["new"] = document["new"] = 1
    assert JobSpec.from_argument(json.dumps(document)) == SPEC


# What the first release told its jobs, word for word.
OLDER = """
{"ingestion": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "attempt": 2, "landed": {"bucket": "landing",
"key": "nyc/flights/Fl\\u00fcge 1+1.parquet", "version": "v1", "etag": "e1", "size": 10,
"sequencer": "", "landed_at": ""}, "table": "nyc.flights", "branch": "ingest/nyc.flights/x",
"base_hash": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
"lake_bucket": "lake", "contract_key": "contracts/nyc.flights.yaml",
"contract_version": "c1", "report_key": "reports/nyc.flights/x/2.json",
"nessie_uri": "http://nessie:19120", "token_secret": "lakegate/nessie/job"}
"""


def test_an_older_spec_is_understood() -> None:
    """A redeployment reads what running jobs were told before it, however much was added since."""
    assert JobSpec.from_argument(OLDER) == SPEC


def without(field: str) -> str:
    """The argument without one field."""
    document = json.loads(SPEC.to_argument())
    del document[field]
    return json.dumps(document)


@pytest.mark.parametrize(
    "argument",
    ["", "x", "1", "[]", "null", "{}", '{"landed": 1}', without("landed"), without("branch")],
)
def test_no_spec_is_no_spec(argument: str) -> None:
    """A text that is not a whole spec is refused."""
    with pytest.raises((ValueError, TypeError)):
        JobSpec.from_argument(argument)
