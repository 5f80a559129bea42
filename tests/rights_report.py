"""Tell which rights of the templates' roles the calls of the last tests used, and which none did.

`python -m tests.rights_report [FOLDER]` reads what IAM was asked on each local stack under a folder
of pytest's, by default those of its last runs, and lists for each role the actions that no call
needed: tests lack the call, or the role has a right too many.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from getpass import getuser
from pathlib import Path
from typing import Any

from tests.asked import asked
from tests.compiled import Compiled
from tests.policies import Identity, listed, matches, statements

ROOT = Path(__file__).parents[1]
# Lambda does this with a function's role: it polls queues, writes logs and enters a network (AWS's
# policies AWSLambdaSQSQueueExecutionRole and AWSLambdaVPCAccessExecutionRole). The local AWS needs
# no right for it.
_BY_LAMBDA = (
    "ec2:*",
    "logs:*",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)
_TEMPLATES = (ROOT / "template.yaml", ROOT / "infra" / "platform.yml")


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.rights_report")
    runs = Path(tempfile.gettempdir()) / f"pytest-of-{getuser()}"
    parser.add_argument("folder", type=Path, nargs="?", default=runs)
    used = called(of_every_stack(parser.parse_args().folder))
    for template in _TEMPLATES:
        roles = Compiled.of(template, Stage="local").roles()
        for name, unused in unneeded(roles, used).items():
            told = ", ".join(sorted(unused)) if name in used else "no call of it"
            print(f"{template.name} {name}: {told}")


def of_every_stack(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield what the IAM of each stack under a folder was asked."""
    for file in folder.rglob("ministack/asked.jsonl"):
        yield from asked(file.parents[1])


def called(calls: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the actions that were allowed, by the template's name of the caller's role."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in calls:
        if each["allowed"] and ":assumed-role/" in each["who"]:
            found[_logical(each["who"].split("/")[1])].add(each["action"])
    return found


def _logical(physical: str) -> str:
    """Return a role's name in the template: CloudFormation adds the stack's and a random part."""
    return next((part for part in physical.split("-") if part.endswith("Role")), physical)


def unneeded(roles: Mapping[str, Identity], used: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the actions that each role may do and that no call needed."""
    left = {name: _allowed(role) - used.get(name, set()) for name, role in roles.items()}
    return {name: actions for name, actions in left.items() if actions}


def _allowed(role: Identity) -> set[str]:
    """Return the actions that a role may do and that Lambda does not do by itself."""
    allowed = (each for each in statements(*role.policies) if each["Effect"] == "Allow")
    actions = {action for statement in allowed for action in listed(statement["Action"])}
    return {each for each in actions if not any(matches(known, each) for known in _BY_LAMBDA)}


if __name__ == "__main__":
    main()
