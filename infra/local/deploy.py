"""Puts the project's template and code onto ministack, the way the AWS command line does.

Like `aws cloudformation package` it uploads the code and names its address in the template; like
`aws cloudformation deploy` it makes a change set and carries it out.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.local import ministack
from infra.package import Package
from lakegate.errors import LakegateError

_CODE_BUCKET = "lakegate-artifacts"
_CODE_URI = "CodeUri: build/lambda.zip"
_NO_CHANGE = "didn't contain changes"
_SECONDS = 120


def put_secrets(endpoint: str, secrets: Mapping[str, str]) -> None:
    """Have each secret hold its value."""
    manager = ministack.client("secretsmanager", endpoint)
    for name, value in secrets.items():
        try:
            manager.create_secret(Name=name, SecretString=value)
        except manager.exceptions.ResourceExistsException:
            manager.put_secret_value(SecretId=name, SecretString=value)


def put_facts(endpoint: str, facts: Mapping[str, str]) -> None:
    """Have each SSM parameter hold its value."""
    parameters = ministack.client("ssm", endpoint)
    for name, value in facts.items():
        parameters.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


def deploy(
    endpoint: str, name: str, template: Path, package: Package, parameters: Mapping[str, str]
) -> dict[str, str]:
    """Bring the stack `name` to what template, code and parameters say; returns its outputs.

    Raises LakegateError with CloudFormation's reasons when that fails.
    """
    cloudformation = ministack.client("cloudformation", endpoint)
    body = template.read_text().replace(_CODE_URI, f"CodeUri: {_upload_code(endpoint, package)}")
    try:
        change = _change_set(cloudformation, name, body, parameters)
        if change:
            _carry_out(cloudformation, name, change)
        return _outputs(cloudformation, name)
    except (ClientError, BotoCoreError) as error:
        raise LakegateError("DEPLOYMENT_FAILED", f"the stack {name}: {error}") from error


def upload_job(endpoint: str, bucket: str, package: Package) -> None:
    """Put the job's entry point and packages where the functions look for them."""
    s3 = ministack.client("s3", endpoint)
    for file in (package.job_entry_point, package.job_zip):
        key = f"jobs/{package.job_release}/{file.name}"
        if not s3.list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"]:
            s3.upload_file(str(file), bucket, key)


def environment(endpoint: str, function: str) -> dict[str, str]:
    """The settings that a deployed function has."""
    found = ministack.client("lambda", endpoint).get_function_configuration(FunctionName=function)
    return dict(found["Environment"]["Variables"])


def _upload_code(endpoint: str, package: Package) -> str:
    s3 = ministack.client("s3", endpoint)
    key = f"{package.lambda_release}.zip"
    if _CODE_BUCKET not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=_CODE_BUCKET)
    if not s3.list_objects_v2(Bucket=_CODE_BUCKET, Prefix=key)["KeyCount"]:
        s3.upload_file(str(package.lambda_zip), _CODE_BUCKET, key)
    return f"s3://{_CODE_BUCKET}/{key}"


def _change_set(
    cloudformation: Any, name: str, body: str, parameters: Mapping[str, str]
) -> str | None:
    """The id of a change set that is ready; None where nothing has changed."""
    made = cloudformation.create_change_set(
        StackName=name,
        ChangeSetName=f"up-{time.time_ns()}",
        ChangeSetType="UPDATE" if _exists(cloudformation, name) else "CREATE",
        TemplateBody=body,
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )["Id"]
    found = _settled(lambda: cloudformation.describe_change_set(ChangeSetName=made), "Status")
    if found["Status"] == "CREATE_COMPLETE":
        return str(made)
    cloudformation.delete_change_set(ChangeSetName=made)
    if _NO_CHANGE in found.get("StatusReason", ""):
        return None
    raise LakegateError("DEPLOYMENT_FAILED", f"the stack {name}: {found.get('StatusReason')}")


def _carry_out(cloudformation: Any, name: str, change: str) -> None:
    cloudformation.execute_change_set(ChangeSetName=change)
    found = _settled(lambda: _stack(cloudformation, name), "StackStatus")
    if found["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        reasons = [
            f"    {e['LogicalResourceId']}: {e.get('ResourceStatusReason', '')}"
            for e in events
            if e["ResourceStatus"].endswith("_FAILED")
        ]
        told = "\n".join([f"the stack {name} ended {found['StackStatus']}:", *reasons])
        raise LakegateError("DEPLOYMENT_FAILED", told)


def _exists(cloudformation: Any, name: str) -> bool:
    """Whether there is a stack to update; one that never came to be is cleared away."""
    try:
        status = _stack(cloudformation, name)["StackStatus"]
    except ClientError as error:
        if "does not exist" in str(error):
            return False
        raise
    if status not in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS"):
        return True
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(
        StackName=name, WaiterConfig={"Delay": 1}
    )
    return False


def _stack(cloudformation: Any, name: str) -> dict[str, Any]:
    return dict(cloudformation.describe_stacks(StackName=name)["Stacks"][0])


def _outputs(cloudformation: Any, name: str) -> dict[str, str]:
    return {o["OutputKey"]: o["OutputValue"] for o in _stack(cloudformation, name)["Outputs"]}


def _settled(look: Callable[[], dict[str, Any]], status: str) -> dict[str, Any]:
    deadline = time.monotonic() + _SECONDS
    while (found := look())[status].endswith(("_IN_PROGRESS", "_PENDING")):
        if time.monotonic() > deadline:
            message = f"CloudFormation still says {found[status]} after {_SECONDS} seconds"
            raise LakegateError("DEPLOYMENT_FAILED", message)
        time.sleep(0.1)
    return found
