"""Upload built files under hashes of their content; no file is ever replaced."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from infra.package import Package
from infra.stage import Stage
from lakegate.errors import LakegateError

_MOST_INLINE = 51_200  # the longest template in a request to CloudFormation, in bytes


class Artifacts:
    """A stage's bucket for code and templates and the folder of the jobs' code in its lake."""

    def __init__(self, client: Any, stage: Stage) -> None:
        """Use boto3's `s3` client."""
        self._client = client
        self._stage = stage

    def code_address(self, package: Package) -> str:
        """Return the address of the functions' code after `put_code`."""
        return f"s3://{self._stage.artifact_bucket}/{_code_key(package)}"

    def put_code(self, package: Package) -> None:
        """Upload the functions' code unless it is there; create a missing bucket."""
        with _translated("the functions' code"):
            self._make_bucket()
            self._put_once(self._stage.artifact_bucket, _code_key(package), package.lambda_zip)

    def put_job(self, package: Package) -> bool:
        """Upload the job's code unless it is there; return False if there is no lake bucket."""
        bucket = self._stage.lake_bucket
        with _translated("the job's code"):
            if not self._has_bucket(bucket):
                return False
            for file in package.job_files:
                self._put_once(bucket, f"jobs/{package.job_release}/{file.name}", file)
        return True

    def template(self, body: str) -> dict[str, str]:
        """Return a template for CloudFormation: its text, or its address if it is too long."""
        content = body.encode()
        if len(content) <= _MOST_INLINE:
            return {"TemplateBody": body}
        key = f"templates/{hashlib.sha256(content).hexdigest()[:16]}.json"
        bucket = self._stage.artifact_bucket
        with _translated("the template"):
            self._make_bucket()
            self._client.put_object(Bucket=bucket, Key=key, Body=content)
        return {"TemplateURL": f"https://s3.{self._stage.region}.amazonaws.com/{bucket}/{key}"}

    def _make_bucket(self) -> None:
        bucket, region = self._stage.artifact_bucket, self._stage.region
        if self._has_bucket(bucket):
            return
        # S3 does not take us-east-1 as a location.
        place = {} if region == "us-east-1" else {"LocationConstraint": region}
        self._client.create_bucket(
            Bucket=bucket, **({"CreateBucketConfiguration": place} if place else {})
        )
        blocks = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls")
        self._client.put_public_access_block(
            Bucket=bucket,
            PublicAccessBlockConfiguration=dict.fromkeys((*blocks, "RestrictPublicBuckets"), True),
        )

    def _has_bucket(self, bucket: str) -> bool:
        return self._there(self._client.head_bucket, Bucket=bucket)

    def _put_once(self, bucket: str, key: str, file: Path) -> None:
        if not self._there(self._client.head_object, Bucket=bucket, Key=key):
            owner = {"ExpectedBucketOwner": self._stage.account}
            self._client.upload_file(str(file), bucket, key, ExtraArgs=owner)

    def _there(self, ask: Callable[..., Any], **what: str) -> bool:
        """Return whether S3 has it. A bucket of another account is an error."""
        try:
            ask(**what, ExpectedBucketOwner=self._stage.account)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchBucket", "NoSuchKey"):
                return False
            raise
        return True


def _code_key(package: Package) -> str:
    return f"code/{package.lambda_release}.zip"


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError, S3UploadFailedError) as error:
        message = f"{what} could not be put into S3: {error}"
        raise LakegateError("UPLOAD_FAILED", message) from error
