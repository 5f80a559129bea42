"""The local EMR Serverless refuses callers what IAM does not allow them, in AWS's words."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import requests

from infra.local import ministack
from tests.contract.callers import Rights, allow, client, refusal
from tests.contract.emr_service import APPLICATION, Service, start_request
from tests.deploy.account import Account
from tests.waiting import PATIENCE

pytestmark = pytest.mark.stack

WHERE = f"arn:aws:emr-serverless:us-east-1:{ministack.ACCOUNT}:/applications/{APPLICATION}"
JOB = f"arn:aws:iam::{ministack.ACCOUNT}:role/job"
PASSING = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
ELSEWHERE = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
# Returns boto3's client of a role with these statements.
As = Callable[..., Any]


LOOK = allow("emr-serverless:GetJobRun", f"{WHERE}/jobruns/*")
START = allow("emr-serverless:StartJobRun", WHERE)
PASS = allow("iam:PassRole", JOB, Condition=PASSING)


@pytest.fixture(scope="module")
def service(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("emr"), account.endpoint)
    yield service.start("--iam")
    service.stop()


@pytest.fixture
def caller(rights: Rights, service: Service) -> As:
    """Return a function that makes a role with statements, and returns its client."""
    return lambda *given, **how: client("emr-serverless", service.url, rights(*given, **how))


def test_a_role_without_the_right_is_refused_as_by_aws(caller: As) -> None:
    """A refusal names the session, the action and the resource, as AWS's does."""
    told = refusal(caller(START).get_job_run, applicationId=APPLICATION, jobRunId="00f1")
    assert told.startswith(
        f"AccessDeniedException: User: arn:aws:sts::{ministack.ACCOUNT}:assumed-role/role-"
    )
    assert told.endswith(
        "/ann is not authorized to perform: emr-serverless:GetJobRun on resource: "
        f"{WHERE}/jobruns/00f1 because no identity-based policy allows the "
        "emr-serverless:GetJobRun action"
    )


def test_a_role_with_the_right_is_answered(caller: As) -> None:
    """What the role may is done: here the run does not exist."""
    look = caller(LOOK).get_job_run
    told = refusal(look, applicationId=APPLICATION, jobRunId="00f1")
    assert told.startswith("ResourceNotFoundException")


def test_a_session_may_only_what_its_policy_allows_too(caller: As) -> None:
    """The policy of a session narrows its role."""
    look = caller(LOOK, START, session=START).get_job_run
    assert "AccessDenied" in refusal(look, applicationId=APPLICATION, jobRunId="00f1")


@pytest.mark.parametrize(
    ("statements", "lacking"),
    [
        ((PASS,), "emr-serverless:StartJobRun"),
        ((START,), "iam:PassRole"),
        ((START, {**PASS, "Condition": ELSEWHERE}), "iam:PassRole"),
        ((START, PASS), "emr-serverless:TagResource"),
    ],
)
def test_starting_takes_every_right_that_it_takes_on_aws(
    caller: As, statements: tuple[Mapping[str, Any], ...], lacking: str
) -> None:
    """Who starts a run must be able to start, to tag, and to pass the job's role to EMR."""
    start = caller(*statements).start_job_run
    told = refusal(start, **start_request("succeed"), tags={"a": "b"})
    assert f"AccessDeniedException: User: arn:aws:sts::{ministack.ACCOUNT}" in told
    assert f"is not authorized to perform: {lacking} " in told


def test_an_unsigned_request_is_refused(service: Service) -> None:
    """Nobody gets an answer without a signature for this service."""
    answer = requests.get(f"{service.url}/applications/{APPLICATION}", timeout=PATIENCE)
    assert (answer.status_code, answer.headers["x-amzn-ErrorType"]) == (
        403,
        "MissingAuthenticationTokenException",
    )


def test_the_owner_of_the_account_may_everything(service: Service) -> None:
    """The account's root is the administrator: tests and deployers act as it."""
    assert service.state() == "CREATED"


@pytest.mark.parametrize(
    "strange",
    [{**LOOK, "Condition": {"StringResembles": {"aws:username": "ann"}}}, {**LOOK, "Unless": "x"}],
)
def test_a_policy_that_is_not_understood_fails_loudly(
    caller: As, strange: Mapping[str, Any]
) -> None:
    """An element or an operator that the local IAM does not know is neither allowed nor skipped."""
    look = caller(strange, LOOK).get_job_run
    told = refusal(look, applicationId=APPLICATION, jobRunId="00f1")
    assert "AccessDenied" not in told
    assert "ResourceNotFound" not in told


def test_a_right_on_every_key_is_one_on_keys_with_line_ends(
    account: Account, rights: Rights
) -> None:
    """A wildcard of a policy stands for a line end in a file's name as well."""
    account.client("s3").create_bucket(Bucket="landing")
    allowed = client(
        "s3", account.endpoint, rights(allow("s3:PutObject", "arn:aws:s3:::landing/a/*"))
    )
    allowed.put_object(Bucket="landing", Key="a/new\nline.csv", Body=b"")
    assert "AccessDenied" in refusal(allowed.put_object, Bucket="landing", Key="b/\n", Body=b"")
