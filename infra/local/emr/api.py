"""EMR Serverless's API for an account's applications, and the stand-in's own two endpoints.

Requests are read and checked by botocore's service model, and refused as by AWS.
"""

import functools
import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import botocore
from botocore.model import Shape
from botocore.utils import parse_timestamp
from flask import Flask, request
from werkzeug.datastructures import MultiDict

from infra.local.emr import runs
from infra.local.emr.faults import Faults, NoSuchFault
from infra.local.emr.limits import Limits
from infra.local.emr.refusals import AwsError, invalid, model
from infra.local.emr.runs import Application, JobRun
from infra.local.emr.scheduler import Scheduler
from infra.local.emr.store import JobRuns, TokenUsed, now


def parsed(
    operation: str, path: dict[str, str], query: MultiDict[str, str], body: Any
) -> dict[str, Any]:
    """Return an operation's input from path, query and body.

    Raises AwsError (ValidationException) if the service model does not allow it. Members that the
    model does not know are left out.
    """
    shape = model().operation_model(operation).input_shape
    if not isinstance(body, dict):
        raise invalid("the body of the request is not a JSON object")
    given: dict[str, Any] = {}
    for name, member in shape.members.items():
        place = member.serialization.get("location", "body")
        if place == "uri":
            given[name] = path[name]
        elif place == "querystring" and name in query:
            given[name] = _from_query(name, member, query)
        elif place == "body" and body.get(name) is not None:
            given[name] = body[name]
    _check(shape, given)
    return given


def _from_query(name: str, shape: Shape, query: MultiDict[str, str]) -> Any:
    if shape.type_name == "list":
        return query.getlist(name)
    try:
        if shape.type_name == "timestamp":
            return parse_timestamp(query[name]).timestamp()
        return int(query[name]) if shape.type_name == "integer" else query[name]
    except ValueError as error:
        raise invalid(f"Value '{query[name]}' at '{name}' is not a {shape.type_name}") from error


def _check(shape: Shape, value: Any) -> None:
    problems = list(_problems(shape, value, ""))
    if problems:
        counted = f"{len(problems)} validation error{'s' * (len(problems) > 1)} detected"
        raise invalid(f"{counted}: {'; '.join(problems)}"[:1024])


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "structure": dict,
    "map": dict,
    "list": list,
    "string": str,
    "integer": int,
    "long": int,
    "boolean": bool,
    "timestamp": (int, float),
}


def _problems(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """Yield a value's violations of the service model, in AWS's words."""
    if not isinstance(value, _PYTHON_TYPES[shape.type_name]):
        yield f"Value at '{path}' failed to satisfy constraint: Member must be a {shape.type_name}"
        return
    for rule in _broken_rules(shape, value):
        shown = "" if shape.metadata.get("sensitive") else f" '{value}'"
        yield f"Value{shown} at '{path}' failed to satisfy constraint: Member must {rule}"
    for inner, inside, name in _inside(shape, value):
        yield from _problems(inner, inside, f"{path}.{name}".lstrip("."))


def _broken_rules(shape: Shape, value: Any) -> Iterator[str]:
    rules = shape.metadata
    is_number = shape.type_name in ("integer", "long")
    size, noun = (value, "value") if is_number else (_size(value), "length")
    if size < rules.get("min", size):
        yield f"have {noun} greater than or equal to {rules['min']}"
    if size > rules.get("max", size):
        yield f"have {noun} less than or equal to {rules['max']}"
    if "pattern" in rules and not re.fullmatch(rules["pattern"], value, re.DOTALL):
        yield f"satisfy regular expression pattern: {rules['pattern']}"
    if value not in rules.get("enum", [value]):
        yield f"satisfy enum value set: {rules['enum']}"
    for name in rules.get("required", ()):
        if name not in value:
            yield f"not be null: {name}"
    if rules.get("union") and len(value) != 1:
        yield "have exactly one member"


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _inside(shape: Shape, value: Any) -> Iterator[tuple[Shape, Any, str]]:
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if value.get(name) is not None:
                yield member, value[name], name
    elif shape.type_name == "list":
        for number, item in enumerate(value, start=1):
            yield shape.member, item, f"{number}.member"
    elif shape.type_name == "map":
        for key, item in value.items():
            yield shape.key, key, f"{key}.key"
            yield shape.value, item, f"{key}.value"


# Raises AwsError unless the sender of an operation with this input, known by the request's
# signature, may do it.
Require = Callable[[str, Mapping[str, Any], str], None]

_PAGE = 50
_MOST_MINUTES = 10_080
_OPERATIONS = ("StartJobRun", "GetJobRun", "ListJobRuns", "GetApplication", "StopApplication")
_UNSUPPORTED = ("attempt", "createdAtBefore", "mode", "states")  # of EMR Serverless's


@dataclass(frozen=True)
class Lane:
    """An application with its job runs, which no other application knows, and their scheduler."""

    application: Application
    runs: JobRuns
    scheduler: Scheduler

    def described(self) -> dict[str, Any]:
        """Return the application as GetApplication shows it."""
        return runs.application_description(self.application, self.scheduler.state())

    def find(self, given: dict[str, Any]) -> JobRun:
        """Return the job run that a request names. Raises AwsError if it is not one of these."""
        try:
            return self.runs.get(given["jobRunId"])
        except KeyError:
            raise AwsError(
                "ResourceNotFoundException", f"Job run {given['jobRunId']} does not exist"
            ) from None


class Operations:
    """The operations, named as in boto3: each takes its input and returns its output."""

    def __init__(self, lanes: Iterable[Lane], faults: Faults) -> None:
        self._lanes = {lane.application.id: lane for lane in lanes}
        self._faults = faults

    def health(self) -> dict[str, Any]:
        """Return the drivers and how many runs are in each state, of all applications."""
        drivers: list[dict[str, Any]] = []
        states: Counter[str] = Counter()
        for lane in self._lanes.values():
            drivers += lane.scheduler.drivers()
            states.update(run.state for run in lane.runs.all())
        return {"drivers": drivers, "runs": states}

    def start_job_run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Start a run: a client token starts one run, however often it is sent."""
        lane = self._lane(given)
        self._strike("fail_next_starts")
        _check_start(given)
        run_id = uuid.uuid4().hex[:16]
        try:
            run = lane.runs.start(JobRun(run_id, given, created_at := now(), created_at))
        except TokenUsed as error:
            raise AwsError("ConflictException", str(error)) from error
        if run.id == run_id:
            lane.scheduler.submit(run_id)
        self._strike("lose_next_answers")
        arn = runs.arn(run, lane.application)
        return {"applicationId": lane.application.id, "jobRunId": run.id, "arn": arn}

    def get_job_run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Describe a run."""
        lane = self._lane(given)
        return {"jobRun": runs.description(lane.find(given), lane.application)}

    def list_job_runs(self, given: dict[str, Any]) -> dict[str, Any]:
        """List the application's runs that were created since a time, the newest first."""
        lane = self._lane(given)
        since = given.get("createdAtAfter", 0)
        job_runs = [run for run in lane.runs.all() if run.created_at >= since]
        return _page([runs.summary(run, lane.application) for run in job_runs], given)

    def get_application(self, given: dict[str, Any]) -> dict[str, Any]:
        """Describe the application."""
        return {"application": self._lane(given).described()}

    def stop_application(self, given: dict[str, Any]) -> dict[str, Any]:
        """Stop the application; it starts again with the next run."""
        if not self._lane(given).scheduler.stop():
            raise invalid("The application has job runs that are not complete")
        return {}

    def _strike(self, fault: str) -> None:
        if self._faults.strikes(self._faults.requests, fault):
            raise AwsError(self._faults.requests.fail_with, f"{fault}, as /_control asked")

    def _lane(self, given: dict[str, Any]) -> Lane:
        try:
            return self._lanes[given["applicationId"]]
        except KeyError:
            raise AwsError(
                "ResourceNotFoundException", f"Application {given['applicationId']} does not exist"
            ) from None


def _check_start(given: dict[str, Any]) -> None:
    """Check what the service model does not say. Raises AwsError."""
    _check_policy(given.get("executionIamPolicy", {}).get("policy"))
    if "sparkSubmit" not in given.get("jobDriver", {}):
        raise invalid("jobDriver must be sparkSubmit: the application is of type Spark")
    if given.get("retryPolicy", {}).get("maxAttempts", 1) > 1:
        raise invalid("retryPolicy.maxAttempts must be 1: this stand-in does not retry runs")
    if not 1 <= given.get("executionTimeoutMinutes", 1) <= _MOST_MINUTES:
        raise invalid(f"executionTimeoutMinutes must be between 1 and {_MOST_MINUTES}")


def _check_policy(text: str | None) -> None:
    if text is None:
        return
    try:
        statements = json.loads(text)["Statement"]
        complete = all({"Effect", "Action", "Resource"} <= each.keys() for each in statements)
    except (ValueError, TypeError, KeyError, AttributeError):
        complete = False
    if not complete:
        raise invalid("executionIamPolicy.policy is malformed: it is not an IAM policy")


def _page(items: list[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Return one page of a list: its token is the last item's id, so new items move nothing."""
    if "nextToken" in given:
        try:
            items = items[[item["id"] for item in items].index(given["nextToken"]) + 1 :]
        except ValueError as error:
            raise invalid(f"nextToken {given['nextToken']} is not of this list") from error
    size = given.get("maxResults", _PAGE)
    page: dict[str, Any] = {"jobRuns": items[:size]}
    return page | {"nextToken": items[size - 1]["id"]} if len(items) > size else page


def web_app(operations: Operations, faults: Faults, limits: Limits, require: Require) -> Flask:
    """Return the service: the operations at the service model's paths, `/_control`, `/_health`.

    `require` raises AwsError for a caller who may not do an operation with this input.
    """
    app = Flask("emr-serverless")
    for name in _OPERATIONS:
        http = model().operation_model(name).http
        path = http["requestUri"].replace("{", "<").replace("}", ">")
        operation = getattr(operations, botocore.xform_name(name))
        answer = functools.partial(_answer, name, operation, limits, require)
        app.add_url_rule(path, name, answer, methods=[http["method"]])
    control = functools.partial(_control, faults)
    app.add_url_rule("/_control", "control", control, methods=["GET", "PUT"])
    app.add_url_rule("/_health", "health", lambda: {"status": "ok", **operations.health()})
    app.register_error_handler(AwsError, _refusal)
    return app


def _answer(
    name: str,
    operation: Callable[[dict[str, Any]], dict[str, Any]],
    limits: Limits,
    require: Require,
    **path: str,
) -> dict[str, Any]:
    try:
        body = json.loads(request.get_data() or "{}")
    except ValueError as error:
        raise invalid(f"the body of the request is not JSON: {error}") from error
    given = parsed(name, path, request.args, body)
    if unsupported := [member for member in _UNSUPPORTED if member in given]:
        raise invalid(f"this stand-in does not support {', '.join(unsupported)} of {name}")
    require(name, given, request.headers.get("Authorization", ""))
    if not limits.take(name):
        raise AwsError("ThrottlingException", "Rate exceeded")
    return operation(given)


def _refusal(error: AwsError) -> tuple[dict[str, str], int, dict[str, str]]:
    return {"message": str(error)}, error.status, {"x-amzn-ErrorType": error.code}


def _control(faults: Faults) -> tuple[dict[str, Any], int]:
    if request.method == "PUT":
        try:
            faults.replace(request.get_json())
        except NoSuchFault as error:
            return {"message": str(error)}, 400
    return faults.left(), 200
