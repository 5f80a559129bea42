"""A stage and the adapters that deploy it."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError

from infra.cloudformation import Stacks, Tell, translated
from infra.package import Package
from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError

# Upload built files under hashes of their content; no file is ever replaced.

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
            return self._there(self._client.head_object, Bucket=self._stage.lake_bucket, Key=key)

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
        return self._there(self._client.head_bucket, Bucket=bucket)

    def _put_once(self, bucket: str, key: str, file: Path) -> None:
        """Upload a file unless the very same one is there, by the checksum that S3 made."""
        owner = {"Bucket": bucket, "Key": key, "ExpectedBucketOwner": self._stage.account}
        content = file.read_bytes()
        checksum = b64encode(hashlib.sha256(content).digest()).decode()
        if self._checksum(owner) != checksum:
            self._client.put_object(**owner, Body=content, ChecksumSHA256=checksum)

    def _checksum(self, owner: Mapping[str, str]) -> str:
        """Return the checksum of an object, "" if there is no object or it has none."""
        if not self._there(self._client.head_object, Bucket=owner["Bucket"], Key=owner["Key"]):
            return ""
        found = self._client.head_object(**owner, ChecksumMode="ENABLED")
        return str(found.get("ChecksumSHA256", ""))

    def _there(self, ask: Callable[..., Any], **what: str) -> bool:
        """Return whether S3 has it. A bucket of another account is an error."""
        try:
            ask(**what, ExpectedBucketOwner=self._stage.account)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchBucket", "NoSuchKey"):
                return False
            raise
        return True


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


# Facts that a stage's parts share through SSM parameters, `/lakegate/<stage>/…`.

PLATFORM = (
    *("nessie-uri", "emr-application-id", "emr-shared-application-id"),
    *("subnet-a", "subnet-b", "function-security-group"),
)
JOB_RELEASE = "job-release"


class Facts:
    """A stage's facts: those of PLATFORM and JOB_RELEASE."""

    def __init__(self, client: Any, stage: Stage) -> None:
        """Use boto3's `ssm` client."""
        self._client = client
        self._stage = stage

    def read(self, facts: Iterable[str]) -> dict[str, str]:
        """Return the facts that are set. Raises LakegateError FACTS_UNAVAILABLE."""
        names = {self._stage.parameter(fact): fact for fact in facts}
        with _using_ssm():
            found = self._client.get_parameters(Names=list(names))["Parameters"]
        return {names[each["Name"]]: each["Value"] for each in found}

    def put(self, facts: Mapping[str, str]) -> None:
        """Set the facts. Raises LakegateError FACTS_UNAVAILABLE."""
        known = self.read(facts)
        with _using_ssm():
            for fact, value in facts.items():
                if known.get(fact) != value:
                    name = self._stage.parameter(fact)
                    self._client.put_parameter(
                        Name=name, Value=value, Type="String", Overwrite=True
                    )


def check_platform(facts: Facts, stage: Stage) -> None:
    """Raise LakegateError NO_PLATFORM with the commands that set the missing facts."""
    known = facts.read(PLATFORM)
    missing = [stage.parameter(fact) for fact in PLATFORM if fact not in known]
    if missing:
        commands = [
            f"    aws ssm put-parameter --type String --name {n} --value …" for n in missing
        ]
        message = "your own platform needs these SSM parameters; put them with:"
        raise LakegateError("NO_PLATFORM", "\n".join([message, *commands]))


def _using_ssm() -> AbstractContextManager[None]:
    return translated("FACTS_UNAVAILABLE", "cannot read or write the SSM parameters")


# Returns boto3's client of a service.
Client = Callable[[str], Any]


@dataclass(frozen=True)
class Site:
    """The adapters that deploy a stage; `tell` reports the progress."""

    stage: Stage
    stacks: Stacks
    artifacts: Artifacts
    facts: Facts
    client: Client
    tell: Tell


def connect(stage: Stage, client: Client, tell: Tell) -> Site:
    """Return the adapters of a stage."""
    return Site(
        stage=stage,
        stacks=Stacks(client("cloudformation"), tell, stage.tags),
        artifacts=Artifacts(client("s3"), stage),
        facts=Facts(client("ssm"), stage),
        client=client,
        tell=tell,
    )


def has_own_platform(site: Site) -> bool:
    """Return whether the platform's facts were set, but not by Lakegate's platform stack.

    An own platform has to be declared only once, and Lakegate never builds a second one, also if a
    new release needs one fact more: `check_platform` asks for that.
    """
    known = site.facts.read(PLATFORM)
    return bool(known) and not site.stacks.exists(site.stage.platform_stack)


# The caller's identity, account and region.


def stage_here(name: str, session: Any, tell: Callable[[str], None]) -> Stage:
    """Return the stage `name` in the account and region of boto3's `session`, and report both.

    Raises LakegateError BAD_STAGE, NO_REGION or NO_CREDENTIALS.
    """
    checked_name(name)
    if not session.region_name:
        message = "no AWS region is set: set AWS_DEFAULT_REGION, or `region` in ~/.aws/config"
        raise LakegateError("NO_REGION", message)
    try:
        caller = session.client("sts").get_caller_identity()
    except (ClientError, BotoCoreError) as error:
        message = f"AWS does not know you: {error}; try `aws sts get-caller-identity`"
        raise LakegateError("NO_CREDENTIALS", message) from error
    stage = Stage(name, caller["Account"], session.region_name)
    where = f"account {stage.account}, region {stage.region}"
    tell(f"stage {name} in {where}, as {caller['Arn']}")
    return stage


# A stage's choices for the template's parameters, in `stages/<stage>.yml`.


def choices(file: Path) -> dict[str, str]:
    """Return the parameters that a stage's file sets, none without a file. Raises LakegateError."""
    if not file.exists():
        return {}
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise LakegateError("BAD_SETTING", f"{file} cannot be read: {error}") from error
    if not isinstance(found or {}, dict):
        raise LakegateError("BAD_SETTING", f"{file} must have names and values: SlackChannel: …")
    return {str(name): str(value) for name, value in (found or {}).items()}
