"""The HTTP side: EMR Serverless's API for one application, and the stand-in's own two endpoints."""

import base64
import functools
import json
import re
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import botocore
import botocore.session
from botocore.model import ServiceModel, Shape
from botocore.utils import parse_timestamp
from flask import Flask, request
from werkzeug.datastructures import MultiDict

from infra.local.emr import runs
from infra.local.emr.faults import Faults, NoSuchFault
from infra.local.emr.runs import Application, JobRun, WrongState
from infra.local.emr.scheduler import Scheduler
from infra.local.emr.store import JobRuns, TokenUsed, now

# Requests as botocore's own service model describes them: read, checked, refused as AWS would.


class AwsError(Exception):
    """An answer that is an error: `code` is the name of the exception that a client gets."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        """The HTTP status that AWS answers this error with."""
        return model().shape_for(self.code).metadata["error"]["httpStatusCode"]


def invalid(message: str) -> AwsError:
    """The refusal of a request that is not as it should be."""
    return AwsError("ValidationException", message)


@cache
def model() -> ServiceModel:
    """EMR Serverless as botocore knows it."""
    return botocore.session.get_session().get_service_model("emr-serverless")


def parsed(
    operation: str, path: dict[str, str], query: MultiDict[str, str], body: Any
) -> dict[str, Any]:
    """An operation's input, put together from its three places.

    Raises AwsError (ValidationException) where the service model does not allow it. Members that
    the model does not know are left out.
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
    """What the service model has against a value, in AWS's words."""
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


_PAGE = 50
_MOST_ATTEMPTS = 10
_MOST_MINUTES = 10_080
_OPERATIONS = (
    "StartJobRun",
    "GetJobRun",
    "ListJobRuns",
    "CancelJobRun",
    "ListJobRunAttempts",
    "GetApplication",
    "ListApplications",
)


class Operations:
    """The operations, named as in boto3: each takes its input and gives its output."""

    def __init__(
        self, application: Application, job_runs: JobRuns, scheduler: Scheduler, faults: Faults
    ) -> None:
        self._application = application
        self._runs = job_runs
        self._scheduler = scheduler
        self._faults = faults

    def start_job_run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Start a run: a client token starts one, however often it comes."""
        self._check_application(given)
        self._strike("fail_next_starts")
        _check_start(given)
        run_id = uuid.uuid4().hex[:16]
        try:
            run = self._runs.start(runs.submitted(run_id, given, now()))
        except TokenUsed as error:
            raise AwsError("ConflictException", str(error)) from error
        if run.id == run_id:
            self._scheduler.submit(run_id)
        self._strike("lose_next_answers")
        arn = runs.arn(run, self._application)
        return {"applicationId": self._application.id, "jobRunId": run.id, "arn": arn}

    def get_job_run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Describe a run, with its last attempt or the one asked for."""
        run = self._find(given)
        number = given.get("attempt", run.last.number)
        if number > run.last.number:
            raise AwsError("ResourceNotFoundException", f"{run.id} has no attempt {number}")
        attempt = run.attempts[number - 1]
        return {"jobRun": runs.description(run, attempt, self._application)}

    def list_job_runs(self, given: dict[str, Any]) -> dict[str, Any]:
        """List runs, the newest first, grouped by state where states are asked for."""
        self._check_application(given)
        states = given.get("states", [])
        after, before = given.get("createdAtAfter", 0), given.get("createdAtBefore", float("inf"))
        found = [
            run
            for run in self._runs.all()
            if (not states or run.state in states) and after <= run.created_at <= before
        ]
        if states:
            found.sort(key=lambda run: states.index(run.state))
        return _page("jobRuns", [runs.summary(run, self._application) for run in found], given)

    def cancel_job_run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Cancel a run; one that is being cancelled already stays so."""
        run = self._find(given)
        grace = given.get("shutdownGracePeriodInSeconds")
        if grace and not 15 <= grace <= 1800:
            raise invalid("shutdownGracePeriodInSeconds must be 0 or between 15 and 1800")
        try:
            if run.state != "CANCELLING":
                self._scheduler.cancel(run.id, "Cancelled by CancelJobRun.", grace)
        except WrongState as error:
            raise invalid(f"Job run {run.id} is not in a cancellable state") from error
        return {"applicationId": self._application.id, "jobRunId": run.id}

    def list_job_run_attempts(self, given: dict[str, Any]) -> dict[str, Any]:
        """List the attempts at a run, the first one first."""
        run = self._find(given)
        shown = [runs.attempt_summary(run, each, self._application) for each in run.attempts]
        return _page("jobRunAttempts", shown, given, key="attempt")

    def get_application(self, given: dict[str, Any]) -> dict[str, Any]:
        """Describe the application."""
        self._check_application(given)
        return {"application": runs.application_description(self._application)}

    def list_applications(self, given: dict[str, Any]) -> dict[str, Any]:
        """List the one application, which is STARTED."""
        shown = [runs.application_summary(self._application)]
        return {"applications": shown if "STARTED" in given.get("states", ["STARTED"]) else []}

    def _strike(self, fault: str) -> None:
        if self._faults.strikes(self._faults.requests, fault):
            raise AwsError(self._faults.requests.fail_with, f"{fault}, as told")

    def _check_application(self, given: dict[str, Any]) -> None:
        if given["applicationId"] != self._application.id:
            raise AwsError(
                "ResourceNotFoundException", f"Application {given['applicationId']} does not exist"
            )

    def _find(self, given: dict[str, Any]) -> JobRun:
        self._check_application(given)
        try:
            return self._runs.get(given["jobRunId"])
        except KeyError:
            raise AwsError(
                "ResourceNotFoundException", f"Job run {given['jobRunId']} does not exist"
            ) from None


def _check_start(given: dict[str, Any]) -> None:
    """What the service asks beyond its model. Raises AwsError."""
    _check_policy(given.get("executionIamPolicy", {}).get("policy"))
    if "sparkSubmit" not in given.get("jobDriver", {}):
        raise invalid("jobDriver must be sparkSubmit: the application is of type Spark")
    if given.get("mode", "BATCH") != "BATCH":
        raise invalid("mode must be BATCH: this stand-in runs no streaming jobs")
    if given.get("retryPolicy", {}).get("maxAttempts", 1) > _MOST_ATTEMPTS:
        raise invalid(f"retryPolicy.maxAttempts must be between 1 and {_MOST_ATTEMPTS}")
    if not 1 <= given.get("executionTimeoutMinutes", 1) <= _MOST_MINUTES:
        raise invalid(f"executionTimeoutMinutes must be between 1 and {_MOST_MINUTES}")


def _check_policy(text: str | None) -> None:
    if text is None:
        return
    try:
        statements = json.loads(text)["Statement"]
        whole = all({"Effect", "Action", "Resource"} <= each.keys() for each in statements)
    except (ValueError, TypeError, KeyError, AttributeError):
        whole = False
    if not whole:
        raise invalid("executionIamPolicy.policy is malformed: it is no policy in IAM's language")


def _page(
    name: str, items: list[dict[str, Any]], given: dict[str, Any], key: str = "id"
) -> dict[str, Any]:
    """One page of a list: a token names the last item before it, so new items move nothing."""
    if "nextToken" in given:
        try:
            before = base64.urlsafe_b64decode(given["nextToken"]).decode()
            items = items[[str(item[key]) for item in items].index(before) + 1 :]
        except ValueError as error:
            raise invalid(f"nextToken {given['nextToken']} is not of this list") from error
    size = given.get("maxResults", _PAGE)
    page: dict[str, Any] = {name: items[:size]}
    if len(items) > size:
        last = str(items[size - 1][key]).encode()
        return page | {"nextToken": base64.urlsafe_b64encode(last).decode()}
    return page


def web_app(operations: Operations, scheduler: Scheduler, faults: Faults) -> Flask:
    """The service: the operations where the service model has them, `/_control` and `/_health`."""
    app = Flask("emr-serverless")
    for name in _OPERATIONS:
        http = model().operation_model(name).http
        path = http["requestUri"].replace("{", "<").replace("}", ">")
        answer = functools.partial(_answer, name, getattr(operations, botocore.xform_name(name)))
        app.add_url_rule(path, name, answer, methods=[http["method"]])
    control = functools.partial(_control, faults)
    app.add_url_rule("/_control", "control", control, methods=["GET", "PUT"])
    app.add_url_rule("/_health", "health", lambda: {"status": "ok", **scheduler.health()})
    app.register_error_handler(AwsError, _refusal)
    return app


def _answer(
    name: str, operation: Callable[[dict[str, Any]], dict[str, Any]], **path: str
) -> dict[str, Any]:
    try:
        body = json.loads(request.get_data() or "{}")
    except ValueError as error:
        raise invalid(f"the body of the request is not JSON: {error}") from error
    return operation(parsed(name, path, request.args, body))


def _refusal(error: AwsError) -> tuple[dict[str, str], int, dict[str, str]]:
    return {"message": str(error)}, error.status, {"x-amzn-ErrorType": error.code}


def _control(faults: Faults) -> tuple[dict[str, Any], int]:
    if request.method == "PUT":
        try:
            faults.replace(request.get_json())
        except NoSuchFault as error:
            return {"message": str(error)}, 400
    return faults.told(), 200
