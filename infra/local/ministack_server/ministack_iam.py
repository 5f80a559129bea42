"""The IAM of the local AWS: ministack's, completed, strict, on record, and open to stand-ins."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from os.path import commonpath
from pathlib import Path
from typing import Any

from ministack import app as ministack
from ministack.core import iam_actions, iam_evaluator
from ministack.services import cloudformation, sts

App = Callable[[Any, Any, Any], Awaitable[None]]

_RIGHTS = "/_rights"
_ELEMENTS = frozenset(
    ("Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal")
)


def complete() -> None:
    """Complete ministack's IAM: wildcards, conditions of trust policies, TLS, SQS's batches.

    In AWS `${*}`, `${?}` and `${$}` stand for themselves, and `*` for line ends, too. When a
    service assumes a role, AWS gives the trust policy the resource that it acts for; here the
    external id does. A role's sessions have the role's name. Requests within this machine count
    as TLS, which the policies require. A batch needs the right of the single action (SQS Developer
    Guide, "API permissions").
    """
    trusts = iam_evaluator.evaluate_trust_policy

    @lru_cache(maxsize=4096)
    def compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
        parts = re.findall(r"\$\{([*?$])\}|(.)", pattern, re.DOTALL)
        wild = {"*": ".*", "?": "."}
        regex = "".join(re.escape(a) if a else wild.get(b) or re.escape(b) for a, b in parts)
        return re.compile(rf"{regex}\Z", re.DOTALL | (re.IGNORECASE if ignore_case else 0))

    def trusts_for(document: Any, caller: str, context: Any = None) -> bool:
        source = context.service_context.get("sts:externalid") if context else None
        if source and caller.endswith(":root"):
            keys = {"aws:sourcearn": source, "aws:sourceaccount": source.split(":")[4]}
            context.service_context.update(keys)
        return trusts(document, caller, context)

    resolve = iam_evaluator._resolve_condition_key  # noqa: SLF001

    def resolve_role(key: str, context: Any) -> Any:
        resolved = resolve(key, context)
        if key.lower() != "aws:principalarn":
            return resolved
        return re.sub(r":sts:(:\d+:)assumed-role/([^/]+)/.*", r":iam:\1role/\2", resolved)

    enforce = iam_evaluator.enforce

    def enforce_single(key: str, action: str, *more: Any, **context: Any) -> Any:
        single = action.removesuffix("Batch") if action.startswith("sqs:") else action
        return enforce(key, single, *more, **context)

    _refuse_what_is_unknown()
    _name_resources()
    iam_evaluator.enforce = enforce_single
    iam_evaluator._resolve_condition_key = resolve_role  # noqa: SLF001
    iam_evaluator._fnmatch_compile = compiled  # noqa: SLF001
    iam_evaluator.evaluate_trust_policy = trusts_for
    # Also without a request: a service that sends to a queue or receives for a role.
    iam_evaluator._request_origin = ContextVar("origin", default=("127.0.0.1", True))  # noqa: SLF001
    pin = ministack.pin_request_origin
    ministack.pin_request_origin = lambda address, _: pin(address, True)


def _refuse_what_is_unknown() -> None:
    """Fail for a policy with an element or an operator that ministack would pass over."""
    parse, evaluate = iam_evaluator.parse_policy_document, iam_evaluator._evaluate_single_condition  # noqa: SLF001

    @lru_cache(maxsize=1024)  # a job asks thousands of times
    def parsed(document: str) -> Any:
        statements = json.loads(document)["Statement"]
        for each in [statements] if isinstance(statements, dict) else statements:
            if strange := each.keys() - _ELEMENTS:
                raise NotImplementedError(f"an IAM policy with {sorted(strange)}")
        return parse(document)

    def parse_known(document: Any) -> Any:
        return parsed(document if isinstance(document, str) else json.dumps(document))

    def evaluate_known(operator: str, *values: Any) -> bool:
        plain = operator.lower().removesuffix("ifexists").rpartition(":")[2]
        if plain not in {*iam_evaluator._CONDITION_OPS, "null"}:  # noqa: SLF001
            raise NotImplementedError(f"an IAM policy with the operator {operator}")
        return evaluate(operator, *values)

    iam_evaluator.parse_policy_document = parse_known
    iam_evaluator._evaluate_single_condition = evaluate_known  # noqa: SLF001


def _name_resources() -> None:
    """Name resources as AWS does: ministack asks for `*` in some services, or for another name.

    Of several parameters it asks for all in their folder, which is more than AWS asks for.
    """
    extract = iam_actions.extract_resource_arn

    def extract_named(service: str, *request: Any) -> str:
        arn = str(extract(service, *request))
        *_, body, query, region, account = request
        if service == "events":  # a rule of the default bus
            return arn.replace(":rule/default/", ":rule/")
        if service == "cloudformation" and (stack := _stack_of(query)):
            named = f"arn:aws:cloudformation:{region}:{account}:stack/{stack}/0"
            return stack if stack.startswith("arn:") else named
        if service == "ssm" and (names := json.loads(body or b"{}").get("Names")):
            place = names[0] if len(names) == 1 else f"{commonpath(names)}/*"
            return f"arn:aws:ssm:{region}:{account}:parameter/{place.lstrip('/')}"
        return arn

    iam_actions.extract_resource_arn = extract_named


def _stack_of(query: Mapping[str, Any]) -> str:
    """Return the stack that a request names, or to which the change set belongs that it names."""
    if stack := iam_actions._query_param(query, "StackName"):  # noqa: SLF001
        return str(stack)
    change_set = iam_actions._query_param(query, "ChangeSetName")  # noqa: SLF001
    known = cloudformation._change_sets.get(change_set)  # noqa: SLF001
    return str(known["StackId"]) if known else ""


def note_requests(file: Path) -> None:
    """Write each role's requests and IAM's answers to a file, one JSON object a line.

    What is allowed is written once, what is refused each time.
    """
    enforce = iam_evaluator.enforce
    noted: set[str] = set()

    def enforce_and_note(key: str, action: str, *more: Any, **context: Any) -> Any:
        refusal = enforce(key, action, *more, **context)
        session = sts._sessions.get(key)  # noqa: SLF001
        if session:
            request = {"who": session["Arn"], "action": action, "allowed": refusal is None}
            conditional = action == "iam:PassRole" or action.startswith("kms:")
            keys = context["service_context"] if conditional else {}
            line = json.dumps(
                request | {"resource": context.get("resource_arn", "*"), "keys": keys}
            )
            if refusal or line not in noted:
                noted.add(line)
                with file.open("a") as notes:
                    notes.write(f"{line}\n")
        return refusal

    iam_evaluator.enforce = enforce_and_note


def answering(app: App) -> App:
    """Return the app, which also tells a stand-in what IAM allows the holder of an access key.

    `POST /_rights` takes `caller`, `action`, `resource` and the condition `keys`; the answer has
    the `refusal` in AWS's words, "" where the caller may.
    """

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != _RIGHTS:
            await app(scope, receive, send)
            return
        asked = json.loads(await _body(receive))
        told = json.dumps({"refusal": _refusal(**asked)}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": told})

    return answer


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    return body


def _refusal(caller: str, action: str, resource: str, keys: dict[str, str]) -> str:
    service, region = action.partition(":")[0], "us-east-1"
    refusal = iam_evaluator.enforce(
        caller, action, service, region, resource_arn=resource, service_context=keys
    )
    if refusal is None:
        return ""
    if isinstance(refusal, iam_evaluator.AuthError):
        return str(refusal.message)
    who, is_denied = refusal.principal_arn, refusal.decision == "Deny"
    return str(iam_actions.identity_denial_message(action, who, resource, is_denied))
