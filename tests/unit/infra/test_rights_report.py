"""The report of rights names what no call needed, by the roles that the templates have."""

import json
from pathlib import Path
from typing import Any

from tests.policies import Identity
from tests.rights_report import called, of_every_stack, unneeded


def _asked(role: str, action: str, allowed: bool = True) -> dict[str, Any]:
    who = f"arn:aws:sts::1:assumed-role/lakegate-local-{role}-0A1B/session"
    return {"who": who, "action": action, "allowed": allowed}


def _role(*actions: str) -> Identity:
    allowed = {"Effect": "Allow", "Action": [*actions], "Resource": "*"}
    denied = {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "*"}
    return Identity("arn", [{"Statement": [allowed, denied]}])


def test_only_rights_that_no_call_needed_are_named() -> None:
    """A right counts as needed if a session of its own role was allowed to use it."""
    calls = [
        _asked("SweepRole", "sqs:SendMessage"),
        _asked("SweepRole", "s3:PutObject", allowed=False),
        _asked("ActRole", "s3:GetObject"),
        {**_asked("SweepRole", "s3:GetObject"), "who": "arn:aws:iam::1:root"},
    ]
    roles = {
        "SweepRole": _role("sqs:SendMessage", "s3:PutObject", "s3:GetObject"),
        "ActRole": _role("s3:GetObject", "logs:PutLogEvents"),
        "ExpireRole": _role("s3:GetObject"),
    }
    assert unneeded(roles, called(calls)) == {
        "SweepRole": {"s3:PutObject", "s3:GetObject"},
        "ExpireRole": {"s3:GetObject"},
    }


def test_the_calls_of_every_stack_count(tmp_path: Path) -> None:
    """What the IAM of each stack was asked is read, except a line that a kill cut."""
    wanted = [_asked("ActRole", "s3:GetObject"), _asked("ActRole", "s3:PutObject")]
    for number, each in enumerate(wanted):
        folder = tmp_path / f"stack{number}" / "ministack"
        folder.mkdir(parents=True)
        (folder / "asked.jsonl").write_text(json.dumps(each) + '\n{"who": "arn')
    found = sorted(of_every_stack(tmp_path), key=lambda each: str(each["action"]))
    assert found == wanted
