"""An evaluation of requests against IAM policies, for tests.

It follows the IAM User Guide, "Policy evaluation logic": an explicit deny wins; otherwise the
identity's policies must allow the request, and so must a session's policy if there is one. Within
an account a resource's policy may allow it instead; here resource policies only deny.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Policy = Mapping[str, Any]
Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """One action on one resource, with its condition keys."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Identity:
    """A role's ARN, its policies, and the session's policy if any."""

    arn: str
    policies: Sequence[Policy]
    session: Policy | None = None

    def may(self, action: str, resource: str, *others: Policy, **context: str) -> bool:
        """Return whether this is allowed; `others` are the resource's policies, which may deny it.

        Condition keys have `__` in place of the colon: `aws__SecureTransport`.
        """
        keys = {name.replace("__", ":"): value for name, value in context.items()}
        request = Request(action, resource, {"aws:PrincipalArn": self.arn, **keys})
        limits = [self.policies, *([[self.session]] if self.session else [])]
        everything = [*self.policies, *([self.session] if self.session else [])]
        if _any(everything, "Deny", request) or _denies(others, request):
            return False
        return all(_any(policies, "Allow", request) for policies in limits)


def statements(*policies: Policy) -> Iterator[Statement]:
    """Yield every statement of these policies."""
    for policy in policies:
        yield from listed(policy["Statement"])


def listed(value: Any) -> list[Any]:
    """Return a value that may be a list as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def matches(pattern: str, text: str, *, case: bool = True) -> bool:
    """Return whether an IAM pattern matches; `${*}`, `${?}` and `${$}` stand for themselves."""
    parts = re.findall(r"\$\{[*?$]\}|.", pattern, re.DOTALL)
    wild = {"*": ".*", "?": "."}
    regex = "".join(wild.get(p) or re.escape(p[2] if p.startswith("${") else p) for p in parts)
    return bool(re.fullmatch(regex, text, re.DOTALL if case else re.DOTALL | re.IGNORECASE))


def applies(statement: Statement, request: Request) -> bool:
    """Return whether a statement applies to this request."""
    return (
        _names(statement, "Action", request.action, case=False)
        and _names(statement, "Resource", request.resource)
        and all(
            _holds(operator, key, listed(values), request.context)
            for operator, tests in statement.get("Condition", {}).items()
            for key, values in tests.items()
        )
    )


def _any(policies: Iterable[Policy], effect: str, request: Request) -> bool:
    return any(s["Effect"] == effect and applies(s, request) for s in statements(*policies))


def _denies(policies: Iterable[Policy], request: Request) -> bool:
    mine = (s for s in statements(*policies) if s["Effect"] == "Deny" and s["Principal"] == "*")
    return any(applies(statement, request) for statement in mine)


def _names(statement: Statement, element: str, text: str, *, case: bool = True) -> bool:
    if f"Not{element}" in statement:
        return not any(matches(p, text, case=case) for p in listed(statement[f"Not{element}"]))
    return any(matches(pattern, text, case=case) for pattern in listed(statement[element]))


def _holds(operator: str, key: str, values: list[str], context: Mapping[str, str]) -> bool:
    """Return whether a condition holds; a missing key meets only negated operators."""
    negated = "Not" in operator
    if key not in context:
        return negated
    like = operator in ("StringLike", "ArnLike", "ArnEquals", "StringNotLike", "ArnNotLike")
    like = like or operator == "ArnNotEquals"
    if not like and operator not in ("StringEquals", "StringNotEquals", "Bool"):
        raise NotImplementedError(operator)
    found = str(context[key])
    met = any(matches(str(v), found) if like else _same(operator, v, found) for v in values)
    return met is not negated


def _same(operator: str, value: object, found: str) -> bool:
    if operator == "Bool":
        return str(value).lower() == found.lower()
    return str(value) == found
