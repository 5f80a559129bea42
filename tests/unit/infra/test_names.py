"""A stage's name can be taken once in each region of an account, and no service refuses it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from infra import template
from infra.stage import Stage, checked_name
from tests.compiled import ACCOUNT

ROOT = Path(__file__).parents[3]
TEMPLATES = [ROOT / "template.yaml", *sorted((ROOT / "infra").glob("**/*.yml"))]
# Types whose names an account, or S3, has once in all regions, with the property that names them.
GLOBAL = {
    "AWS::Budgets::Budget": "BudgetName",
    "AWS::CloudFront::Distribution": "Aliases",
    "AWS::CloudFront::Function": "Name",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::OIDCProvider": "Url",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::SAMLProvider": "Name",
    "AWS::IAM::User": "UserName",
    "AWS::S3::Bucket": "BucketName",
}
LONGEST = {"BucketName": 63, "BudgetName": 100, "DashboardName": 255}  # as the services allow
REGIONS = [
    region
    for partition in ("aws", "aws-us-gov")
    for region in botocore.session.get_session().get_available_regions("s3", partition)
]


def _named(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each global name of a template, as written, with the property that has it."""
    for resource in template.read(file).get("Resources", {}).values():
        named = GLOBAL.get(resource["Type"], "")
        properties = resource.get("Properties", {})
        within = {**properties, **properties.get("Budget", {})}
        if named in within:
            yield named, str(within[named].get("Fn::Sub"))


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    within = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in within:
        yield from _texts(each)


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_a_name_that_is_global_has_the_region(file: Path) -> None:
    """Without it a second region could not have the stage, or would change the first one's."""
    assert [name for _, name in _named(file) if "${AWS::Region}" not in name] == []
    buckets = [t for t in _texts(template.read(file)) if "${Stage}" in t and "s3:::lakegate" in t]
    own = [t for t in _texts(template.read(file)) if t.startswith("lakegate-${Stage}-lake")]
    assert all("-${AWS::AccountId}-${AWS::Region}" in text for text in [*buckets, *own])


def test_the_global_names_are_found() -> None:
    """Both buckets, the dashboard and the budget have names; roles get theirs of CloudFormation."""
    found = sorted(name for file in TEMPLATES for name, _ in _named(file))
    assert found == ["BucketName", "BucketName", "BudgetName", "DashboardName"]


@pytest.mark.parametrize("region", REGIONS)
def test_the_longest_name_of_a_stage_fits_in_every_region(region: str) -> None:
    """A longer one is refused before anything is made."""
    name = checked_name("s" * 18)
    email = template.read(ROOT / "infra/platform.yml")["Parameters"]["BudgetEmail"]["MaxLength"]
    values = {"Stage": name, "AWS::AccountId": ACCOUNT, "AWS::Region": region}
    values |= {"BudgetEmail": "e" * email}
    for kind, text in (each for file in TEMPLATES for each in _named(file)):
        for placeholder, value in values.items():
            text = text.replace(f"${{{placeholder}}}", value)  # noqa: PLW2901
        assert "$" not in text
        assert len(text) <= LONGEST[kind], text
    stage = Stage(name, ACCOUNT, region)
    assert max(len(stage.artifact_bucket), len(stage.lake_bucket)) <= LONGEST["BucketName"]


def test_a_stage_in_two_regions_has_two_buckets() -> None:
    """Neither region's code nor lake is the other's."""
    here, there = (Stage("shop", ACCOUNT, region) for region in ("eu-west-1", "us-east-1"))
    names = [name for each in (here, there) for name in (each.artifact_bucket, each.lake_bucket)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("file", "end"), [("template.yaml", ""), ("infra/platform.yml", "-platform")]
)
def test_no_roles_name_is_cut(file: str, end: str) -> None:
    """CloudFormation cuts what is too long with its 14 random letters, and policies begin so."""
    every = template.read(ROOT / file)["Resources"]
    roles = [name for name, each in every.items() if each["Type"] == "AWS::IAM::Role"]
    assert roles
    assert [name for name in roles if len(f"lakegate-{18 * 's'}{end}-{name}") + 14 > 64] == []
