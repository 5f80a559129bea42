"""The three tools that deploy the app's stack, used as docs/aws.md says."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from infra.setup import deploy_environment
from tests.e2e.bare import ROOT, STAGE, Cloud

_BIN = ROOT / ".venv-deploy" / "bin"
_TAKEN = ("template.yaml", "serverless.yml", "infra", "build", "contracts", "node_modules")
_QUIET = {"SAM_CLI_TELEMETRY": "0", "SLS_TELEMETRY_DISABLED": "1"}
_SAM = """
version = 0.1
[{stage}.deploy.parameters]
stack_name = "lakegate-{stage}"
resolve_s3 = true
capabilities = "CAPABILITY_IAM"
fail_on_empty_changeset = false
parameter_overrides = [{facts}, "Stage={stage}", "file://stages/{stage}.yml"]
"""
_FACTS = (
    *("NessieUri", "EmrApplicationId", "SubnetA", "SubnetB", "FunctionSecurityGroup"),
    *("JobRelease",),
)


@dataclass(frozen=True)
class Checkout:
    """A checkout with a file for the stage, and the commands that a person runs in it."""

    root: Path

    @classmethod
    def of(cls, cloud: Cloud, root: Path) -> "Checkout":
        """This checkout's files under `root`, with the settings that the cloud needs."""
        assert deploy_environment(ROOT).is_current(), "run `make deploy-tools`"
        for name in _TAKEN:
            (root / name).symlink_to(ROOT / name)
        (root / "stages").mkdir()
        (root / "stages" / f"{STAGE.name}.yml").symlink_to(cloud.settings)
        facts = [f'"{name}={STAGE.parameter(_kebab(name))}"' for name in _FACTS]
        (root / "samconfig.toml").write_text(_SAM.format(stage=STAGE.name, facts=", ".join(facts)))
        return cls(root)

    def lakegate(self, *words: str) -> str:
        """Deploy with `lakegate deploy`, here without a platform of Lakegate's."""
        settings = self.root / "stages" / f"{STAGE.name}.yml"
        own = ("--own-platform", "--settings", str(settings))
        return self.run(ROOT / ".venv/bin/lakegate", "deploy", "--stage", STAGE.name, *own, *words)

    def destroy(self, *words: str) -> str:
        """Take the stage down."""
        return self.run(ROOT / ".venv/bin/lakegate", "destroy", "--stage", STAGE.name, *words)

    def osls(self) -> str:
        """Deploy with the Serverless Framework's free fork."""
        return self.run("npx", "osls", "deploy", "--stage", STAGE.name)

    def sam(self) -> str:
        """Deploy with SAM."""
        return self.run("sam", "deploy", "--config-env", STAGE.name, "--no-confirm-changeset")

    def run(self, *command: str | Path) -> str:
        """What a command prints; it must succeed."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.root,
            env={**os.environ, **_QUIET, "HOME": str(home), "PATH": _path()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def _path() -> str:
    return f"{_BIN}:{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}"


def _kebab(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")
