"""Build what a release has: the code, the templates without SAM, and what each part consists of.

The wheel is added by `make release`. The tools are those of `make deploy-tools`.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import uv

from infra import package, template
from infra.template import Template
from infra.versions import AVRO_JAR, PYTHON, Jar

ROOT = Path(__file__).resolve().parents[1]
_TOOLS = ROOT / ".venv-deploy" / "bin"
# The parameters that name the functions' code, which template.yaml does not have.
CODE = {
    "CodeBucket": "A bucket in the stack's region with the functions' code.",
    "CodeKey": "The key in it of lambda.zip of the same release.",
}


def build(into: Path) -> None:
    """Build everything but the wheel into an empty directory. Raises LakegateError."""
    built = package.build(ROOT, print, processors=package.architecture({}))
    for file in (built.lambda_zip, *built.job_files):
        shutil.copy(file, into)
    for name, body in templates().items():
        (into / f"{name}.template.json").write_text(json.dumps(body, indent=1))
    (into / "lambda.cdx.json").write_text(_bom(package.lambda_requirements(ROOT)))
    (into / "job.cdx.json").write_text(_bom(package.job_requirements(ROOT), [AVRO_JAR]))
    (into / "wheel.cdx.json").write_text(_bom(_wheel_requirements()))


def templates() -> dict[str, Template]:
    """Return the two stacks' templates as CloudFormation takes them: no anchors, no transform."""
    platform = template.read(ROOT / "infra" / "platform.yml")
    return {"lakegate": application(), "lakegate-platform": platform}


def application() -> Template:
    """Return the application's template; two more parameters name the functions' code."""
    source = template.read(ROOT / "template.yaml")
    named = {name: {"Type": "String", "Description": text} for name, text in CODE.items()}
    whole = {**source, "Parameters": {**source["Parameters"], **named}}
    code = {"Bucket": {"Ref": "CodeBucket"}, "Key": {"Ref": "CodeKey"}}
    given = template.body(template.with_code(whole, code))
    translate = Path(__file__).with_name("translate.py")
    made: Template = json.loads(_run([_TOOLS / "python", "-P", translate], given))
    return made


def _bom(requirements: str, jars: Sequence[Jar] = ()) -> str:
    """Return a bill of materials (CycloneDX, JSON) of pinned packages and jars."""
    # It warns that a list of requirements does not say which of them needs which.
    tool = [_TOOLS / "python", "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements"]
    options = ["--output-reproducible", "--pyproject", "pyproject.toml", "-"]
    made = json.loads(_run([*tool, *options], requirements))
    made["components"] += [_component(jar) for jar in jars]
    return json.dumps(made, indent=1)


def _component(jar: Jar) -> dict[str, object]:
    purl = f"pkg:maven/{jar.organisation}/{jar.name}@{jar.version}"
    return {
        "bom-ref": purl,
        "type": "library",
        "group": jar.organisation,
        "name": jar.name,
        "version": jar.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }


def _wheel_requirements() -> str:
    """Return what the wheel needs, in the versions that it was tested with."""
    command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--generate-hashes"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--python-version", PYTHON]
    command += ["--constraints", "requirements-dev.txt", "pyproject.toml"]
    return _run(command)


def _run(command: Sequence[object], given: str = "") -> str:
    """Return the output of a tool, whose own complaints a person sees."""
    words = [str(word) for word in command]
    tool = subprocess.run(
        words, cwd=ROOT, input=given, stdout=subprocess.PIPE, text=True, check=True
    )
    return tool.stdout


if __name__ == "__main__":
    made = ROOT / "build" / "release"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    build(made)
