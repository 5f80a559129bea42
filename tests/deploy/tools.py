"""A checkout to deploy from, and the three tools that deploy it, used as docs/aws.md says."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra import package, stack_spec
from infra.lambda_python import ENVIRONMENT
from infra.template import read
from tests.deploy.bare import ROOT, STAGE, Cloud

_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = "npm run deploy -- --stage local --own-platform"
_FILES = ("template.yaml", "serverless.yml", "package.json", "requirements.txt")
# These disable telemetry and update checks, and make osls poll more often than every 5 s.
_ENVIRONMENT = {
    "SAM_CLI_TELEMETRY": "0",
    "SLS_TELEMETRY_DISABLED": "1",
    "SLS_AWS_MONITORING_FREQUENCY": "200",  # milliseconds
    "npm_config_update_notifier": "false",
}
# This runs the checkout's own code in the project's own environment, with its cached jars.
_LAKEGATE = """#!/bin/sh
HOME={home} PYTHONPATH={root} exec {python} -c 'from cli.main import app; app()' "$@"
"""


def commands(page: str) -> list[str]:
    """Return the blocks of shell commands in a page of docs/."""
    return _SHELL.findall((ROOT / "docs" / page).read_text())


@dataclass(frozen=True)
class Checkout:
    """A checkout with a file for the stage, in which a user runs commands and changes code."""

    root: Path

    @classmethod
    def of(cls, cloud: Cloud, root: Path) -> "Checkout":
        """Return a copy of this checkout under `root`, with the settings that the cloud needs."""
        package.build(ROOT, print, processors=package.architecture({}))
        for name in (*_packages(), "contracts", "requirements", "build"):
            shutil.copytree(ROOT / name, root / name)
        for name in _FILES:
            shutil.copy(ROOT / name, root / name)
        for name in ("node_modules", ENVIRONMENT):  # the latter compiles the zip's byte code
            (root / name).symlink_to(ROOT / name)
        for name in ("stages", "bin", "home"):
            (root / name).mkdir()
        (root / "stages" / f"{STAGE.name}.yml").write_text(cloud.settings)
        (root / "samconfig.toml").write_text(_sam_configuration())
        program = root / "bin" / "lakegate"
        places = {"home": Path.home(), "root": root, "python": ROOT / ".venv/bin/python"}
        quoted = {name: shlex.quote(str(place)) for name, place in places.items()}
        program.write_text(_LAKEGATE.format(**quoted))
        program.chmod(0o755)
        return cls(root)

    def run(self, script: str, given: str = "", caller: Mapping[str, str] | None = None) -> str:
        """Run shell commands with `given` as typed input; return their output. All must succeed.

        They run as the account's root, or with the variables of a caller's session.
        """
        tools = (self.root / "bin", ROOT / ".venv-deploy/bin")
        path = ":".join([*map(str, tools), os.environ["PATH"]])
        own = {"HOME": str(self.root / "home"), "PATH": path}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.root,
            env={**os.environ, **_ENVIRONMENT, **own, **(caller or {})},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def _packages() -> list[str]:
    """Return the project's packages, all of which must be copied.

    Python imports a package that is not copied from this checkout.
    """
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages: list[str] = told["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return packages


def _sam_configuration() -> str:
    """Return samconfig.toml with the stage's section, which its own comment asks for."""
    known = stack_spec.facts(read(ROOT / "template.yaml"), STAGE)
    facts = [f"{name}={parameter}" for name, parameter in known.items()]
    begin, _, dev = (ROOT / "samconfig.toml").read_text().partition("[dev.deploy.parameters]")
    section = dev.partition("#")[0].replace("dev", STAGE.name)
    section = section.replace(
        '["Stage=', "".join(["[", *(f'"{fact}", ' for fact in facts), '"Stage='])
    )
    return f"{begin}[{STAGE.name}.deploy.parameters]{section}"
