"""template.yaml deployed on ministack, with stub functions that record their calls."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import package
from infra.local.settings import APPLICATION, EVENT_SOURCE, facts, parameters
from infra.local.stack import deploy_stage
from lakegate.errors import LakegateError
from tests.deploy.account import Account, running
from tests.waiting import eventually

pytestmark = pytest.mark.stack

_STAGE, _OTHER, _LAKE = "noted", "mended", "their-lake"
_ROOT = Path(__file__).parents[2]
_STUBS = Path(__file__).parent / "stubs"
_NOWHERE = dict.fromkeys(("nessie", "emr", "slack"), "http://127.0.0.1:1")
# Only the test makes a message come again, never a slow machine.
_CHOSEN = {
    "LakeBucketName": _LAKE,
    "VisibilityTimeout": "43200",
    "FunctionTimeout": "600",
    "MaxReceives": "2",
}


class Aws:
    """The account with the deployed template, and functions from the test's own checkout."""

    def __init__(self, account: Account, root: Path) -> None:
        self.account = account
        self.root = root
        self.outputs: dict[str, str] = {}

    def deploy(self) -> None:
        """Deploy the checkout's present code."""
        built = package.build_here(self.root, lambda _: None)
        told = facts(_NOWHERE), parameters(_NOWHERE) | _CHOSEN
        self.outputs = deploy_stage(
            self.account.endpoint, _STAGE, _ROOT / "template.yaml", built, *told
        )

    def start(self) -> None:
        """Start the account again at another address, and deploy."""
        self.account.start()
        self.deploy()

    def client(self, service: str) -> Any:
        return self.account.client(service)

    def land(self, key: str) -> str:
        """Put a file into the landing bucket; return its version."""
        bucket = self.outputs["LandingBucketName"]
        answer = self.client("s3").put_object(Bucket=bucket, Key=key, Body=b"a,b\n")
        return str(answer["VersionId"])

    def versions(self, bucket: str) -> list[str]:
        """Return the versions of a bucket's objects, as S3 lists them."""
        found = self.client("s3").list_object_versions(Bucket=self.outputs[bucket])
        return [version["VersionId"] for version in found.get("Versions", [])]

    def change_state(self, run: str, state: str, application: str = APPLICATION) -> None:
        """Send the event that a job run is in a new state, as EMR Serverless does."""
        detail = {"jobRunId": run, "applicationId": application, "state": state}
        entry = {
            "Source": EVENT_SOURCE,
            "DetailType": "EMR Serverless Job Run State Change",
            "Detail": json.dumps(detail),
        }
        answer = self.client("events").put_events(Entries=[entry])
        assert answer["FailedEntryCount"] == 0

    def notes(self, beginning: str) -> dict[str, dict[str, Any]]:
        """Return the functions' records under names with this beginning."""
        items = self.client("dynamodb").scan(TableName=self.outputs["LedgerTableName"])["Items"]
        flat = [{name: value.get("S") for name, value in item.items()} for item in items]
        return {item["id"]: item for item in flat if item["id"].startswith(beginning)}

    def comes_again(self, delivery: str) -> None:
        """Make the message of this delivery visible again as soon as the delivery is recorded."""
        note = eventually(lambda: self.notes(delivery).get(delivery), message=f"no {delivery}")
        self.client("sqs").change_message_visibility(
            QueueUrl=self.outputs["UploadQueueUrl"],
            ReceiptHandle=note["receipt"],
            VisibilityTimeout=0,
        )

    def note(self, *ids: str) -> None:
        """Add an item for each id in one transaction."""
        table = self.outputs["LedgerTableName"]
        puts = [{"Put": {"TableName": table, "Item": {"id": {"S": id_}}}} for id_ in ids]
        self.client("dynamodb").transact_write_items(TransactItems=puts)

    def messages(self, queue: str) -> int:
        """Return the number of messages in a queue, including those in flight."""
        counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.client("sqs").get_queue_attributes(
            QueueUrl=self.outputs[queue], AttributeNames=counts
        )["Attributes"]
        return sum(int(attributes[count]) for count in counts)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """Yield an account that no other suite shares: it moves to other addresses."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(_STUBS, root, dirs_exist_ok=True)
    (root / "requirements").mkdir()
    for name in ("requirements.txt", "requirements/job.txt"):
        (root / name).write_text("")
    for name in ("lakegate", "spark_jobs"):
        shutil.copytree(_ROOT / name, root / name)
    with running(tmp_path_factory.mktemp("moving")) as account:
        aws = Aws(account, root)
        aws.client("s3").create_bucket(Bucket=_LAKE)
        aws.deploy()
        yield aws


def test_an_upload_reaches_on_upload(aws: Aws) -> None:
    """A PUT is notified with its key, as S3 encodes it, and the version that landed."""
    version = aws.land("plain/a b+ü.csv")

    noted = eventually(lambda: aws.notes("plain/"))

    assert noted["plain/a+b%2B%C3%BC.csv#1"]["version"] == version


def test_only_what_failed_comes_again(aws: Aws) -> None:
    """Only the failed message of a batch is delivered again."""
    for key in ("batch/one", "batch/flaky", "batch/two"):
        aws.land(key)

    eventually(lambda: len(aws.notes("batch/")) == 3)
    eventually(lambda: aws.messages("UploadQueueUrl") == 1)  # the others are gone
    aws.comes_again("batch/flaky#1")
    eventually(lambda: "batch/flaky#2" in aws.notes("batch/"))

    assert set(aws.notes("batch/")) == {
        "batch/one#1",
        "batch/two#1",
        "batch/flaky#1",
        "batch/flaky#2",
    }


def test_what_always_fails_becomes_a_dead_message(aws: Aws) -> None:
    """After the last try a message is in the dead-letter queue."""
    before = aws.messages("UploadDeadLettersUrl")
    aws.land("poison/a")
    for delivery in ("poison/a#1", "poison/a#2"):
        aws.comes_again(delivery)

    eventually(lambda: aws.messages("UploadDeadLettersUrl") == before + 1)

    assert set(aws.notes("poison/")) == {"poison/a#1", "poison/a#2"}


def test_a_function_may_do_only_what_its_role_says(aws: Aws) -> None:
    """on_upload can write the ledger but not the lake."""
    aws.land("roles/a")

    noted = eventually(lambda: aws.notes("roles/"))

    assert noted["roles/a#1"]["breach"] == "AccessDenied"


def test_an_existing_lake_is_used_as_it_is(aws: Aws) -> None:
    """The stack makes no lake bucket; the named one gets the job's code, and keeps its settings."""
    s3 = aws.client("s3")
    assert aws.outputs["LakeBucketName"] == _LAKE
    made = [each["Name"] for each in s3.list_buckets()["Buckets"]]
    assert not [name for name in made if name.startswith(f"lakegate-{_STAGE}-lake")]
    found = s3.list_objects_v2(Bucket=_LAKE, Prefix="jobs/")
    assert any(each["Key"].endswith("/main.py") for each in found["Contents"])
    with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket=_LAKE)


def test_only_ends_of_our_job_runs_reach_on_job_run(aws: Aws) -> None:
    """The queue receives only terminal state changes of this application."""
    aws.change_state("run-1", "RUNNING")
    aws.change_state("run-2", "SUCCESS", application="00another")
    for state in ("FAILED", "CANCELLED", "SUCCESS"):
        aws.change_state("run-3", state)

    eventually(lambda: len(aws.notes("run-")) >= 3)

    assert set(aws.notes("run-")) == {"run-3:FAILED", "run-3:CANCELLED", "run-3:SUCCESS"}


def test_everything_survives_a_clean_stop(aws: Aws) -> None:
    """After a stop and a start at another address the stack is unchanged and works."""
    version = aws.land("stopped/before")
    noted = eventually(lambda: aws.notes("stopped/"))
    dead = aws.messages("UploadDeadLettersUrl")

    aws.account.stop()
    aws.start()

    assert version in aws.versions("LandingBucketName")
    assert aws.notes("stopped/") == noted
    assert aws.messages("UploadDeadLettersUrl") == dead
    aws.land("stopped/after")
    eventually(lambda: "stopped/after#1" in aws.notes("stopped/"))


def test_everything_survives_a_kill(aws: Aws) -> None:
    """Acknowledged data outside queues survives a kill; a message may be delivered twice."""
    version = aws.land("killed/before")
    eventually(lambda: aws.notes("killed/"))
    deployed = aws.account.home / "ministack" / "state" / "cloudformation.json"
    eventually(deployed.exists, message="the deployment was not saved")
    aws.note("killed/put")
    aws.note("killed/both#1", "killed/both#2")
    noted = aws.notes("killed/")

    aws.account.kill()
    aws.start()

    assert version in aws.versions("LandingBucketName")
    assert set(aws.notes("killed/")) >= set(noted) >= {"killed/put", "killed/both#1"}
    aws.land("killed/after")
    eventually(lambda: "killed/after#1" in aws.notes("killed/"))


def test_a_deployment_that_failed_can_be_mended(aws: Aws, tmp_path: Path) -> None:
    """A failed deployment is reported with the reason, and the next one succeeds."""
    good = _ROOT / "template.yaml"
    bad = tmp_path / "template.yaml"
    wrong = """
  Wrong:
    Type: AWS::Lambda::Url
    DependsOn: [LakeBucket, LedgerTable]
    Properties: {TargetFunctionArn: nobody, AuthType: NONE}

Outputs:"""
    bad.write_text(good.read_text().replace("\nOutputs:", wrong))
    built = package.build_here(aws.root, lambda _: None)
    told = facts(_NOWHERE), parameters(_NOWHERE)

    with pytest.raises(LakegateError, match="Wrong"):
        deploy_stage(aws.account.endpoint, _OTHER, bad, built, *told)

    assert deploy_stage(aws.account.endpoint, _OTHER, good, built, *told)["LedgerTableName"]


def test_changed_code_is_what_runs_next(aws: Aws) -> None:
    """A deployment of changed functions replaces the warm ones."""
    sweep = aws.outputs["SweepFunctionName"]
    aws.client("lambda").invoke(FunctionName=sweep, Payload=b"{}")
    assert "sweep:first" in aws.notes("sweep:")
    code = aws.root / "functions" / "sweep.py"
    code.write_text(code.read_text().replace('"first"', '"second"'))

    aws.deploy()
    aws.client("lambda").invoke(FunctionName=sweep, Payload=b"{}")

    assert "sweep:second" in aws.notes("sweep:")


def test_what_a_function_says_is_in_its_log_group(aws: Aws) -> None:
    """Each function's output is in CloudWatch Logs, in a group named after the function."""
    sweep = aws.outputs["SweepFunctionName"]
    aws.client("lambda").invoke(FunctionName=sweep, Payload=b"{}")

    def is_said() -> bool:
        found = aws.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{sweep}")["events"]
        return any("I am the sweep" in event["message"] for event in found)

    eventually(is_said)
