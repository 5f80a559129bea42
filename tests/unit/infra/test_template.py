"""CloudFormation templates are read, written, and reduced to what holds data."""

import json
from pathlib import Path

import pytest

from infra import template

_ROOT = Path(__file__).parents[3]
_TEMPLATES = [_ROOT / "template.yaml", *(_ROOT / "infra").glob("platform.yml")]

_APP = """
AWSTemplateFormatVersion: "2010-09-09"
Parameters: {Stage: {Type: String}, Timeout: {Type: Number}}
Conditions: {Is: !Equals [!Ref Stage, dev]}
Globals: {Function: {CodeUri: build/lambda.zip}}
Resources:
  Landing:
    Type: AWS::S3::Bucket
    DeletionPolicy: RetainExceptOnCreate
    DependsOn: QueuePolicy
    Properties:
      BucketName: !Sub "landing-${Stage}-${AWS::AccountId}"
      BucketEncryption: !GetAtt Key.Arn
      NotificationConfiguration: {Queue: !GetAtt Queue.Arn}
  LandingPolicy: {Type: AWS::S3::BucketPolicy, Properties: {Bucket: !Ref Landing}}
  Key: {Type: AWS::KMS::Key, Properties: {Alias: &alias {of: [!Ref Stage]}}}
  Queue: {Type: AWS::SQS::Queue, Properties: {Wait: !Ref Timeout, Same: *alias}}
  QueuePolicy: {Type: AWS::SQS::QueuePolicy, Properties: {Queues: [!Ref Queue]}}
  Function: {Type: AWS::Serverless::Function, Properties: {Handler: a.b}}
Outputs:
  LandingName: {Value: !Ref Landing}
  Both: {Value: !Sub "${Landing} ${Queue.Arn}"}
"""


def test_short_forms_are_written_out() -> None:
    """Every short form of a function is written as CloudFormation reads it in JSON."""
    text = "{a: !Ref A, b: !GetAtt B.Arn.x, c: !Sub [x, {y: !Ref C}], d: !Condition D, e: !Not [f]}"

    assert template.parse(text) == {
        "a": {"Ref": "A"},
        "b": {"Fn::GetAtt": ["B", "Arn.x"]},
        "c": {"Fn::Sub": ["x", {"y": {"Ref": "C"}}]},
        "d": {"Condition": "D"},
        "e": {"Fn::Not": ["f"]},
    }


def test_code_is_taken_from_its_address() -> None:
    """The deployed template has all code in S3 instead of build/."""
    deployed = template.with_code(template.parse(_APP), "s3://code/1.zip")

    assert deployed["Globals"]["Function"]["CodeUri"] == "s3://code/1.zip"


def test_data_stays_and_nothing_that_runs() -> None:
    """Retained resources stay with their references and policies, without notifications."""
    left = template.reduced(template.parse(_APP))

    assert list(left["Resources"]) == ["Landing", "LandingPolicy", "Key"]
    assert set(left["Resources"]["Landing"]["Properties"]) == {"BucketName", "BucketEncryption"}
    assert "DependsOn" not in left["Resources"]["Landing"]
    assert list(left["Parameters"]) == ["Stage"]
    assert list(left["Outputs"]) == ["LandingName"]


@pytest.mark.parametrize("file", _TEMPLATES, ids=lambda file: file.name)
def test_what_is_left_refers_to_nothing_that_went(file: Path) -> None:
    """The reduced template contains everything that it refers to, and reducing it does nothing.

    What is sent is the file's content in JSON, which has no anchors.
    """
    complete = template.read(file)
    assert json.loads(template.body(complete)) == complete
    left = template.reduced(complete)
    assert template.reduced(left) == left
    names = {
        name for part in ("Resources", "Parameters", "Conditions") for name in left.get(part, ())
    }

    named = {name for name in template.references(left) if not name.startswith("AWS::")}

    assert named <= names
    kept = {n for n, r in complete["Resources"].items() if r.get("DeletionPolicy")}
    assert kept <= set(left["Resources"])
    assert not [r for r in left["Resources"].values() if "Function" in r["Type"]]
