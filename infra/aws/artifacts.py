"""Upload built files under hashes of their content; no file is ever replaced."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra.cloudformation import translated
from infra.package import Package
from infra.stage import Stage

_NOT_PUBLIC = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
# An older version is for a look back; what an expiry removes, the next deployment uploads again.
_EXPIRY = [
    {
        "ID": "older-versions",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    },
    {
        "ID": "templates",
        "Status": "Enabled",
        "Filter": {"Prefix": "templates/"},
        "Expiration": {"Days": 30},
    },
]
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
        with _uploading("the functions' code"):
            self._make_bucket()
            self._put_once(self._stage.artifact_bucket, _code_key(package), package.lambda_zip)

    def put_job(self, package: Package) -> bool:
        """Upload the job's code unless it is there; return False if there is no lake bucket."""
        bucket = self._stage.lake_bucket
        with _uploading("the job's code"):
            if not self.has_bucket(bucket):
                return False
            for file in package.job_files:
                self._put_once(bucket, f"jobs/{package.job_release}/{file.name}", file)
        return True

    def has_job_file(self, package: Package, name: str) -> bool:
        """Return whether the folder of the job's release in the lake has this file."""
        with _uploading("the job's code"):
            key = f"jobs/{package.job_release}/{name}"
            return bool(self._found(self._client.head_object, self._stage.lake_bucket, Key=key))

    def put_job_file(self, package: Package, name: str, body: bytes) -> None:
        """Add a file to the folder of the job's release in the lake."""
        with _uploading(name):
            key = f"jobs/{package.job_release}/{name}"
            self._client.put_object(Bucket=self._stage.lake_bucket, Key=key, Body=body)

    def template(self, body: str) -> dict[str, str]:
        """Return a template for CloudFormation: its text, or its address if it is too long."""
        content = body.encode()
        if len(content) <= _MOST_INLINE:
            return {"TemplateBody": body}
        key = f"templates/{hashlib.sha256(content).hexdigest()[:16]}.json"
        bucket = self._stage.artifact_bucket
        with _uploading("the template"):
            self._make_bucket()
            self._client.put_object(Bucket=bucket, Key=key, Body=content)
        return {"TemplateURL": f"https://s3.{self._stage.region}.amazonaws.com/{bucket}/{key}"}

    def region(self, bucket: str) -> str:
        """Return the region of a bucket of the account, "" without one.

        Raises LakegateError BAD_SETTING if it is another account's, or must not be looked at.
        """
        whose = f"the bucket {bucket} must be this account's, and you need s3:ListBucket on it"
        with translated("BAD_SETTING", whose):
            answer = self._found(self._client.head_bucket, bucket)
        headers = answer["ResponseMetadata"]["HTTPHeaders"] if answer else {}
        return str(headers.get("x-amz-bucket-region", ""))

    def _make_bucket(self) -> None:
        """Create a missing bucket; let it be private, versioned, and reached by TLS alone."""
        bucket, region = self._stage.artifact_bucket, self._stage.region
        arn = f"arn:{self._client.meta.partition}:s3:::{bucket}"
        if not self.has_bucket(bucket):
            place = {"CreateBucketConfiguration": {"LocationConstraint": region}}
            # S3 does not take us-east-1 as a location.
            self._client.create_bucket(Bucket=bucket, **({} if region == "us-east-1" else place))
        self._client.put_public_access_block(
            Bucket=bucket, PublicAccessBlockConfiguration=dict.fromkeys(_NOT_PUBLIC, True)
        )
        self._client.put_bucket_policy(Bucket=bucket, Policy=_only_with_tls(arn))
        self._client.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
        )
        self._client.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": _EXPIRY}
        )

    def has_bucket(self, bucket: str) -> bool:
        """Return whether the account has the bucket."""
        return bool(self._found(self._client.head_bucket, bucket))

    def _put_once(self, bucket: str, key: str, file: Path) -> None:
        """Upload a file unless the very same one is there, by the checksum that S3 made."""
        content = file.read_bytes()
        checksum = b64encode(hashlib.sha256(content).digest()).decode()
        head = self._client.head_object
        there = self._found(head, bucket, Key=key, ChecksumMode="ENABLED")
        if there.get("ChecksumSHA256") != checksum:
            self._client.put_object(
                Bucket=bucket,
                Key=key,
                Body=content,
                ChecksumSHA256=checksum,
                ExpectedBucketOwner=self._stage.account,
            )

    def _found(self, ask: Callable[..., Any], bucket: str, **what: str) -> dict[str, Any]:
        """Return S3's answer, {} if it is not there. A bucket of another account is an error."""
        try:
            return dict(ask(Bucket=bucket, ExpectedBucketOwner=self._stage.account, **what))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchBucket", "NoSuchKey"):
                return {}
            raise


def _only_with_tls(arn: str) -> str:
    """Return the policy of a bucket that refuses requests without TLS."""
    refused = {
        "Sid": "OnlyWithTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [refused]})


def _code_key(package: Package) -> str:
    return f"code/{package.lambda_release}.zip"


def _uploading(what: str) -> AbstractContextManager[None]:
    return translated("UPLOAD_FAILED", f"{what} could not be put into S3")
