"""Another tool deploys the same stack as `lakegate deploy`."""

from pathlib import Path

from infra.aws import tools
from infra.aws.tools import Tool
from infra.stage import Stage

_STAGE = Stage("shop", "123456789012", "eu-central-1")
_TEMPLATE = {"Parameters": {"NessieUri": {"Type": "AWS::SSM::Parameter::Value<String>"}}}


def test_sam_tags_what_it_deploys(tmp_path: Path) -> None:
    """Without its tags a stack would lose those that it has, by which its costs are told."""
    sam = tmp_path / ".venv-deploy" / "bin" / "sam"
    sam.parent.mkdir(parents=True)
    sam.write_text('#!/bin/sh\necho "$@" > asked\n')
    sam.chmod(0o755)
    tools.run(Tool.SAM, tmp_path, _STAGE, _TEMPLATE)
    asked = (tmp_path / "asked").read_text()
    assert " --tags project=lakegate stage=shop --" in asked
    assert asked.endswith(" NessieUri=/lakegate/shop/nessie-uri Stage=shop\n")
