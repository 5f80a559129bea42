"""Deploy the app's stack with the tool that a team uses."""

import os
import subprocess
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError


class Tool(StrEnum):
    """A tool that deploys the app's stack."""

    LAKEGATE = "lakegate"
    OSLS = "osls"
    SAM = "sam"


def run(tool: Tool, root: Path, stage: Stage, template: Template) -> None:
    """Let osls or sam deploy the app's stack from the checkout. Raises LakegateError."""
    words = _osls(stage) if tool is Tool.OSLS else _sam(root, stage, template)
    try:
        done = subprocess.run(words, cwd=root, env=_environment(root), check=False)
    except FileNotFoundError as error:
        message = f"there is no {words[0]}: run `make deploy-tools`"
        raise LakegateError("DEPLOYMENT_FAILED", message) from error
    if done.returncode:
        raise LakegateError("DEPLOYMENT_FAILED", f"`{' '.join(words)}` failed: see above")


def _osls(stage: Stage) -> list[str]:
    return ["osls", "deploy", "--stage", stage.name, "--region", stage.region]


def _sam(root: Path, stage: Stage, template: Template) -> list[str]:
    """Return the command for a stage, which samconfig.toml need not know."""
    from infra.stack_spec import facts

    chosen = root / "stages" / f"{stage.name}.yml"
    overrides = [f"file://{chosen.relative_to(root)}"] if chosen.exists() else []
    overrides += [f"{name}={where}" for name, where in facts(template, stage).items()]
    return [
        *("sam", "deploy", "--stack-name", stage.stack, "--region", stage.region),
        *("--s3-bucket", stage.artifact_bucket, "--s3-prefix", "sam"),
        *("--tags", *(f"{key}={value}" for key, value in stage.tags.items())),
        *("--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset"),
        *("--no-fail-on-empty-changeset", "--parameter-overrides"),
        *(*overrides, f"Stage={stage.name}"),
    ]


def _environment(root: Path) -> Mapping[str, str]:
    """Return the environment in which the checkout's own tools come first."""
    own = (root / "node_modules" / ".bin", root / ".venv-deploy" / "bin")
    path = os.pathsep.join([*map(str, own), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "LAKEGATE_DEPLOYS": "1"}
