"""The job spec, which a job run receives as it was sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject

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
    """A job reads exactly the spec that was sent, with any characters."""
    assert JobSpec.from_argument(spec.to_argument()) == spec


def test_an_argument_is_one_line_of_ascii() -> None:
    """An argument is one line of ASCII, so that no shell, log or API re-encodes it."""
    argument = SPEC.to_argument()
    assert argument.isascii()
    assert argument.isprintable()


def test_a_newer_specs_fields_are_ignored() -> None:
    """An older job ignores unknown fields of a newer spec."""
    document = json.loads(SPEC.to_argument())
    document["landed"]["new"] = document["new"] = 1
    assert JobSpec.from_argument(json.dumps(document)) == SPEC


# The first release's job spec, word for word.
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
    """A redeployment reads the specs of running jobs, which lack fields added since."""
    assert JobSpec.from_argument(OLDER) == SPEC


def without(field: str) -> str:
    """Return the argument without one field."""
    document = json.loads(SPEC.to_argument())
    del document[field]
    return json.dumps(document)


@pytest.mark.parametrize(
    "argument",
    ["", "x", "1", "[]", "null", "{}", '{"landed": 1}', without("landed"), without("branch")],
)
def test_no_spec_is_no_spec(argument: str) -> None:
    """An incomplete spec is refused."""
    with pytest.raises((ValueError, TypeError)):
        JobSpec.from_argument(argument)
