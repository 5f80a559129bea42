import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from moto.server import ThreadedMotoServer

from infra import package, release, stack_spec, template
from infra.setup import deploy_environment
from infra.stage import Stage
from infra.template import Template

pytestmark = pytest.mark.deploy

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv-deploy" / "bin"
STAGE = Stage("dev", "123456789012", "eu-central-1")  # moto's account
# The machine's own account and telemetry are disabled.
ENVIRONMENT = {
    "PATH": f"{BIN}:{os.environ['PATH']}",
    "AWS_REGION": STAGE.region,
    "AWS_DEFAULT_REGION": STAGE.region,
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "SAM_CLI_TELEMETRY": "0",
    "SLS_TELEMETRY_DISABLED": "1",
}


def run(*command: object, home: Path, given: str = "", **more: str) -> str:
    """Return the output of a command, which must succeed without the user's home and account."""
    if not deploy_environment(ROOT).is_current():
        pytest.fail("the tools that deploy are not there, or are old: run `make deploy-tools`")
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env=ENVIRONMENT | {"HOME": str(home)} | more,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def sts() -> Iterator[str]:
    """Yield an STS that gives osls its account."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def packaged(home: Path, sts: str) -> Path:
    """Return the folder with the output of `osls package`."""
    package.build(ROOT, print)
    osls = ROOT / "node_modules" / ".bin" / "osls"
    out = home / "packaged"
    run(osls, "package", "--stage", STAGE.name, "--package", out, home=home, AWS_ENDPOINT_URL=sts)
    return out


@pytest.fixture(scope="module")
def by_osls(packaged: Path) -> Template:
    """Return the template that osls deploys."""
    made: Template = json.loads(
        (packaged / "cloudformation-template-update-stack.json").read_text()
    )
    return made


@pytest.fixture(scope="module")
def by_sam() -> Template:
    """Return the template that CloudFormation makes of template.yaml, as a release has it."""
    return release.application()


def test_the_templates_are_without_a_fault(home: Path, by_sam: Template) -> None:
    """cfn-lint finds no fault in any template nor in the release's, which SAM's translator made."""
    released = home / "lakegate.template.json"
    released.write_text(json.dumps(by_sam))
    templates = [released, ROOT / "template.yaml", *ROOT.glob("infra/**/*.yml")]
    assert run(BIN / "cfn-lint", *templates, home=home) == ""


def test_both_descriptors_are_one_stack(by_osls: Template, by_sam: Template) -> None:
    """osls and SAM make the same resources, parameters, conditions and outputs."""
    ours, theirs = neutral(by_osls), neutral(by_sam)
    assert ours["Resources"].keys() == theirs["Resources"].keys()
    for name, resource in theirs["Resources"].items():
        assert ours["Resources"][name] == resource, name
    assert ours == theirs


def neutral(made: Template) -> Template:
    """Return a compiled template without expected differences.

    These are the code's address and its parameters, SAM's tag, the functions' dependency on their
    roles by osls (which they refer to anyway), the name of osls's bucket, and cfn-lint's options.
    """
    parameters = {k: v for k, v in made["Parameters"].items() if k not in release.CODE}
    outputs = {k: v for k, v in made["Outputs"].items() if k != "ServerlessDeploymentBucketName"}
    resources = {name: _neutral(resource) for name, resource in made["Resources"].items()}
    rest = {key: value for key, value in made.items() if key != "Metadata"}
    return {**rest, "Parameters": parameters, "Resources": resources, "Outputs": outputs}


def _neutral(resource: dict[str, Any]) -> dict[str, Any]:
    if resource["Type"] != "AWS::Lambda::Function":
        return resource
    properties = {k: v for k, v in resource["Properties"].items() if k not in ("Code", "Tags")}
    awaited = [name for name in resource["DependsOn"] if not name.endswith("Role")]
    return {**resource, "Properties": properties, "DependsOn": awaited}


def test_every_function_is_the_one_package(by_osls: Template) -> None:
    """osls uploads one zip to the bucket of `lakegate deploy`, and all functions run it."""
    functions = [r for r in by_osls["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    code = [function["Properties"]["Code"] for function in functions]
    assert {each["S3Bucket"] for each in code} == {STAGE.artifact_bucket}
    assert len({each["S3Key"] for each in code}) == 1


def test_a_function_has_the_name_that_osls_looks_for(packaged: Path, by_osls: Template) -> None:
    """`osls invoke`, `logs` and `deploy function` address functions by their names in AWS."""
    state = json.loads((packaged / "serverless-state.json").read_text())
    looked_for = {each["name"] for each in state["service"]["functions"].values()}
    functions = [r for r in by_osls["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    names = [function["Properties"]["FunctionName"]["Fn::Sub"] for function in functions]
    assert looked_for == {name.replace("${Stage}", STAGE.name) for name in names}


def test_osls_sees_a_change_of_the_job_alone(packaged: Path) -> None:
    """What osls compares with the last deployment has the hash of the job's code."""
    state = json.loads((packaged / "serverless-state.json").read_text())
    assert state["service"]["custom"]["jobRelease"] == package.build(ROOT, print).job_release


def test_a_stage_is_reported_alike(packaged: Path) -> None:
    """osls sets the same parameters as `lakegate deploy`."""
    state = json.loads((packaged / "serverless-state.json").read_text())
    passed = {
        each["ParameterKey"]: each["ParameterValue"]
        for each in state["service"]["provider"]["stackParameters"]
    }
    known = template.read(ROOT / "template.yaml")
    chosen = yaml.safe_load((ROOT / "stages" / "dev.yml").read_text())
    mine = {name: str(value) for name, value in chosen.items() if name in known["Parameters"]}
    assert passed == stack_spec.parameters(known, STAGE, mine)
