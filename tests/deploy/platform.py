"""The platform's stack in a local account, as far as ministack supports its resources."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import template
from infra.aws.site import connect
from infra.aws.stack_plan import deploy_platform
from infra.cloudformation import Stacks
from infra.local import ministack
from infra.stack_spec import StackSpec
from infra.stage import Stage
from infra.template import Template
from tests.deploy.account import Account

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "infra" / "platform.yml"
# Resources that ministack does not support, and why the stack needs them, as in docs/aws.md.
UNTRIED = {
    "AWS::Budgets::Budget": "the budget's alarm",
    "AWS::EC2::FlowLog": "the log of connections",
    "AWS::ECR::PullThroughCacheRule": "the cache of Nessie's image",
    "AWS::EMRServerless::Application": "the applications that run the jobs",
}
APPLICATION = "00application"
NESSIE = "nessie.lake.example"
TLS = {"CertificateArn": f"arn:aws:acm:{ministack.REGION}:1:certificate/a", "NessieName": NESSIE}


def read() -> Template:
    """Return the platform's template."""
    return template.read(PLATFORM)


def tryable(complete: Template) -> Template:
    """Return the template without unsupported resources, with references to them replaced."""
    left = {k: v for k, v in complete["Resources"].items() if v["Type"] not in UNTRIED}
    for resource in left.values():
        if waits := resource.get("DependsOn"):
            every = waits if isinstance(waits, list) else [waits]
            resource["DependsOn"] = [name for name in every if name in left]
    known: Template = _with_stand_ins({**complete, "Resources": left})
    return known


def _with_stand_ins(value: Any) -> Any:
    if value in ({"Ref": "EmrApplication"}, {"Ref": "EmrSharedApplication"}):
        return APPLICATION
    if value == {"Ref": "NessieTasks"}:
        return 2  # ministack takes no parameter as a number of tasks
    if isinstance(value, str):
        return re.sub(r"\$\{Emr(Shared)?Application\}", APPLICATION, value)
    if isinstance(value, dict):
        return {key: _with_stand_ins(each) for key, each in value.items()}
    return [_with_stand_ins(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Platforms:
    """The platforms' stacks of an account."""

    account: Account

    @property
    def client(self) -> Callable[[str], Any]:
        """Return boto3's client of a service, as the account's root."""
        return self.account.client

    def deploy(self, name: str, **parameters: str) -> Stage:
        """Deploy the platform's stack of a stage, also after `reduce`."""
        stage = Stage(name, ministack.ACCOUNT, ministack.REGION)
        self._bring(stage, tryable(read()), {"Stage": name, **TLS, **parameters})
        return stage

    def begin(self, name: str, **parameters: str) -> Stage:
        """Deploy the platform's stack of a stage as `lakegate deploy` does the first time."""
        stage = Stage(name, ministack.ACCOUNT, ministack.REGION)
        spec = StackSpec(
            stage.platform_stack,
            tryable(read()),
            {"Stage": name, "DeletionProtection": "true", **TLS, **parameters},
        )
        deploy_platform(connect(stage, self.client, _unheard), spec)
        return stage

    def reduce(self, stage: Stage) -> None:
        """Reduce the stack to what `lakegate destroy` leaves."""
        left = template.reduced(tryable(read()))
        self._bring(stage, left, dict.fromkeys(left["Parameters"]))

    def resources(self, stage: Stage) -> dict[str, str]:
        """Return the stack's resources: physical ids by logical ids."""
        found = Stacks(self.client("cloudformation")).resources(stage.platform_stack)
        return {each.name: each.id for each in found}

    def _bring(self, stage: Stage, wanted: Template, parameters: Mapping[str, str | None]) -> None:
        site = connect(stage, self.client, _unheard)
        source = site.artifacts.template(template.body(wanted))
        plan = site.stacks.plan(stage.platform_stack, source, parameters)
        assert plan
        site.stacks.carry_out(plan)

    def container(self, stage: Stage) -> dict[str, str]:
        """Return the environment of Nessie's container, CloudFormation's functions resolved."""
        container = self.task(stage)["containerDefinitions"][0]
        return {each["name"]: each["value"] for each in container["environment"]}

    def task(self, stage: Stage) -> dict[str, Any]:
        """Return the definition of Nessie's tasks."""
        family = f"lakegate-{stage.name}-nessie"
        found = self.client("ecs").describe_task_definition(taskDefinition=family)
        return dict(found["taskDefinition"])

    def credentials(self, role: str) -> dict[str, str]:
        """Return credentials of this role; only ECS may assume it, so root is allowed here, too."""
        root = {"AWS": f"arn:aws:iam::{ministack.ACCOUNT}:root"}
        trust = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
        self.client("iam").update_assume_role_policy(
            RoleName=role.rpartition("/")[2],
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        )
        given = self.client("sts").assume_role(RoleArn=role, RoleSessionName="nessie")
        keys: Mapping[str, str] = given["Credentials"]
        return {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
        }


def _unheard(_: str) -> None:
    """Ignore the progress of a deployment."""
