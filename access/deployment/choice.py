"""Choose and open the deployment to work on: the local stack, or one on AWS.

The libraries of AWS, Nessie and Iceberg take seconds to import. Every command imports this module,
also for its help, so they are imported only where needed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from access.deployment.checkout import home
from access.deployment.deployment import Deployment
from functions.settings import Settings
from infra.local import stack_file
from infra.local.stack_file import Stack
from lakegate.errors import LakegateError

if TYPE_CHECKING:
    import boto3

# Variables that would direct a client of the local stack elsewhere.
_ELSEWHERE = ("aws_", "lakegate_", "http_proxy", "https_proxy", "all_proxy")
# The output with the name of the function whose settings are a stage's.
_SETTINGS = "OnJobRunFunctionName"


@dataclass(frozen=True)
class Choice:
    """The chosen deployment: a `stage` on AWS, the `local` stack, or that of the environment.

    `name` is for display: `the local stack`, `stage dev in eu-central-1`. Choose once: opening a
    deployment changes this process's environment, and a second choice would differ.
    """

    name: str
    stage: str = ""
    local: bool = False

    @classmethod
    def of(cls, stage: str | None) -> "Choice":
        """Choose the named stage, or else the deployment of the environment, or the local stack."""
        ledger = os.environ.get("LAKEGATE_LEDGER_TABLE")
        if not stage and not ledger:
            return cls("the local stack", local=True)
        called = stage or os.environ.get("LAKEGATE_STAGE")
        region = _region()
        named = f"stage {called}" if called else f"ledger {ledger}"
        return cls(f"{named} in {region}" if region else named, stage or "")

    def open(self, *, running: bool = True) -> Deployment:
        """Return the deployment, and set this process's environment to the one it needs.

        The local stack must run unless `running` is False. Raises LakegateError if it is missing.
        """
        if self.stage:
            _enter_stage(_deployed(f"lakegate-{self.stage}"))
        elif self.local:
            from infra.local import processes  # psutil takes its time, which help does not need

            local = stack_file.read(home())
            if running and processes.running(home(), "ministack") is None:
                raise LakegateError("STACK_DOWN", "the local stack is down: run `lakegate up`")
            return stack_deployment(local)
        return _environment_deployment()


def find(stage: str | None = None, *, running: bool = True) -> Deployment:
    """Choose and open the deployment. Raises LakegateError if there is none."""
    return Choice.of(stage).open(running=running)


def stack_deployment(local: Stack) -> Deployment:
    """Return the local stack, independent of the account and proxy in the user's environment."""
    enter(local.env)
    addresses = {
        "s3": local.s3,
        "nessie": local.nessie,
        "iceberg": local.iceberg,
        "emr": local.emr,
        "slack": local.slack,
    }
    return Deployment(Settings.of(os.environ), addresses, local.reader_token, local=True)


def enter(env: Mapping[str, str]) -> None:
    """Give this process the environment of a local stack, without settings of another account."""
    local = {"LAKEGATE_HOME": str(home()), **env}
    os.environ.update(local)  # first: in no moment does it lead another thread elsewhere
    for name in os.environ.keys() - local.keys():
        if name.lower().startswith(_ELSEWHERE):
            del os.environ[name]


def _enter_stage(env: Mapping[str, str]) -> None:
    """Give this process the settings of a stage, and none that another deployment had alone."""
    os.environ.update(env)
    for name in {f"LAKEGATE_{each.name.upper()}" for each in fields(Settings)} - env.keys():
        os.environ.pop(name, None)


def aws_session() -> "boto3.Session":
    """Return boto3's session by the user's settings. Raises LakegateError BAD_AWS_SETTINGS."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.Session()
    except BotoCoreError as error:
        message = f"AWS's settings of this machine cannot be used: {error}"
        remedy = "Correct the variable AWS_PROFILE, or the files in ~/.aws."
        raise LakegateError("BAD_AWS_SETTINGS", f"{message}\n{remedy}") from error


def _region() -> str:
    """Return the region of boto3's clients, or else that of a Lambda; "" if there is none."""
    return aws_session().region_name or os.environ.get("AWS_REGION", "")


def _environment_deployment() -> Deployment:
    settings = Settings.of(os.environ)
    nessie = nessie_address(settings.nessie_uri, os.environ.get("LAKEGATE_NESSIE_FUNCTION", ""))
    addresses = {
        "s3": os.environ.get("AWS_ENDPOINT_URL") or f"https://s3.{_region()}.amazonaws.com",
        "nessie": nessie,
        "iceberg": f"{nessie}/iceberg",
    }
    token = os.environ.get("LAKEGATE_READER_TOKEN", "")
    expire = os.environ.get("LAKEGATE_EXPIRE_FUNCTION", "")
    return Deployment(settings, addresses, token, local=False, expire_function=expire)


def nessie_address(uri: str, function: str) -> str:
    """Return where this process calls the Nessie that has the address `uri` in its network.

    It is a server of this process that calls the `function`, or `uri` itself without a function
    and where LAKEGATE_NESSIE_DIRECT is set.
    """
    if not function or os.environ.get("LAKEGATE_NESSIE_DIRECT"):
        return uri
    from access.deployment import forwarding

    return forwarding.address(function, os.environ.get("AWS_ENDPOINT_URL", ""))


def _deployed(name: str) -> dict[str, str]:
    """Return the settings of a deployed CloudFormation stack, as one of its functions has them."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        stack = boto3.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        told = stack.get("Outputs", [])
        outputs: dict[str, Any] = {o["OutputKey"]: o["OutputValue"] for o in told}
        if _SETTINGS not in outputs:
            raise _taken_down(name)
        function = boto3.client("lambda").get_function_configuration(
            FunctionName=outputs[_SETTINGS]
        )
    except (ClientError, BotoCoreError) as error:
        message = (
            f"cannot read the CloudFormation stack {name}: {error}\n"
            "Are the stage's name, AWS's region (AWS_DEFAULT_REGION) and your credentials right?"
        )
        raise LakegateError("NO_DEPLOYMENT", message) from error
    settings = dict(function["Environment"]["Variables"])
    settings["LAKEGATE_NESSIE_FUNCTION"] = outputs.get("OnNessieRequestFunctionName", "")
    settings["LAKEGATE_EXPIRE_FUNCTION"] = outputs.get("ExpireFunctionName", "")
    return {k: v for k, v in settings.items() if k.startswith(("LAKEGATE_", "AWS_ENDPOINT_"))}


def _taken_down(name: str) -> LakegateError:
    message = (
        f"the CloudFormation stack {name} has no functions: is it being deployed, or taken down?\n"
        "`lakegate deploy` brings it back; what it stored is still there."
    )
    return LakegateError("NO_DEPLOYMENT", message)
