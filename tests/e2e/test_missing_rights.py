"""A right that is taken away ends no file: people are told, and once it is back all goes on."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest
import requests

from functions.adapters.ledger.reads import UnknownIngestion
from functions.model.ingestion import State
from infra.local import ministack
from lakegate.job.landing import ingestion_id
from tests.e2e.conftest import PAUSE, Gate, contract
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

CSV = b"id,amount\n1,10.5\n2,20\n"


@contextmanager
def without(gate: Gate, action: str, resource: str, roles: Sequence[str]) -> Iterator[None]:
    """Take a right away from roles of the stack, and give it back."""
    iam = ministack.client("iam", gate.stack.s3)
    statement = {"Effect": "Deny", "Action": action, "Resource": resource}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    known = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    found = [name for name in known if any(f"-{role}-" in name for role in roles)]
    assert len(found) == len(roles)
    with ExitStack() as expected:
        for name in found:
            expected.enter_context(gate.refusing(name))
            iam.put_role_policy(RoleName=name, PolicyName="taken-away", PolicyDocument=policy)
        try:
            yield
        finally:
            for name in found:
                iam.delete_role_policy(RoleName=name, PolicyName="taken-away")


def is_told(gate: Gate, role: str, action: str) -> bool:
    """Return whether the channel was told that this role lacks this right."""
    messages = requests.get(f"{gate.stack.slack}/messages", timeout=PATIENCE).json()
    sentence = f"-{role}-"
    return any(
        sentence in str(each) and f"lacks the right {action}" in str(each) for each in messages
    )


@pytest.mark.parametrize(
    ("action", "resource", "role", "roles"),
    [
        ("dynamodb:PutItem", "*", "OnUploadRole", ("OnUploadRole", "SweepRole")),
        ("s3:GetObject*", "arn:aws:s3:::*-landing-*/rights/*", "JobRole", ("JobRole",)),
    ],
)
def test_a_file_waits_for_a_right_and_then_goes_on(
    gate: Gate, action: str, resource: str, role: str, roles: Sequence[str]
) -> None:
    """While a right is missing people are told of it; afterwards the file is published."""
    table = f"rights.{action.partition(':')[2].strip('*').lower()}"
    gate.put_contract(contract(table, "csv"))
    key = f"{table.replace('.', '/')}/a.csv"
    with without(gate, action, resource, roles):
        landed = gate.drop(key, CSV)
        told = f"nobody is told that {role} lacks {action}"
        eventually(lambda: is_told(gate, role, action.strip("*")), PATIENCE, told, PAUSE)
        try:
            assert not gate.adapters.ledger.get(ingestion_id(landed)).ended
        except UnknownIngestion:
            assert action.startswith("dynamodb")
    assert gate.end(landed).state is State.PUBLISHED
    assert len(gate.rows(table)) == len(CSV.splitlines()) - 1
