"""Try the deployed Nessie from inside its network: it is a newer one than tests run."""

from collections.abc import Iterator
from typing import Any

from functions.health.model import Status
from infra.checkup import ask
from lakegate.errors import LakegateError

# The sweep has the token that may write; the checkup has those that may not.
_ASKED = (("sweep", "conformance"), ("checkup", "access"))


def require_conformance(client: Any, stack: str) -> int:
    """Return how many behaviours and rules of Nessie were tried; all are as Lakegate relies on.

    `client` is boto3's `lambda` client. Raises LakegateError NESSIE_DEVIATES with the first that is
    otherwise, and CHECKUP_FAILED if the functions of the stack do not answer.
    """
    findings = list(_findings(client, stack))
    if wrong := [each for each in findings if each["status"] == Status.FAIL]:
        raise LakegateError("NESSIE_DEVIATES", _message(wrong))
    return len(findings)


def _findings(client: Any, stack: str) -> Iterator[dict[str, str]]:
    for function, request in _ASKED:
        name = f"{stack}-{function}"
        answer = ask(client, name, {"do": request})
        if not isinstance(answer, list):
            message = f"the function {name} is of an older release: deploy again"
            raise LakegateError("CHECKUP_FAILED", message)
        yield from answer


def _message(wrong: list[dict[str, str]]) -> str:
    first, *others = wrong
    more = f" ({len(others)} more)" if others else ""
    return f"{first['check']}: {first['message']}{more}\n{first['fix']}"
