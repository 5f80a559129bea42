"""A stage and the adapters that deploy it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from infra.cloudformation import Stacks, Tell
from infra.package import Package
from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError

# Upload built files under hashes of their content; no file is ever replaced.

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
        with _translated_artifacts("the functions' code"):
            self._make_bucket()
            self._put_once(self._stage.artifact_bucket, _code_key(package), package.lambda_zip)

    def put_job(self, package: Package) -> bool:
        """Upload the job's code unless it is there; return False if there is no lake bucket."""
        bucket = self._stage.lake_bucket
        with _translated_artifacts("the job's code"):
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
        with _translated_artifacts("the template"):
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
def _translated_artifacts(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError, S3UploadFailedError) as error:
        message = f"{what} could not be put into S3: {error}"
        raise LakegateError("UPLOAD_FAILED", message) from error


# Facts that a stage's parts share through SSM parameters, `/lakegate/<stage>/…`.

PLATFORM = ("nessie-uri", "emr-application-id", "subnet-a", "subnet-b", "function-security-group")
JOB_RELEASE = "job-release"
_AT_ONCE = 10  # the most names in a GetParameters request


class Facts:
    """A stage's facts: those of PLATFORM and JOB_RELEASE."""

    def __init__(self, client: Any, stage: Stage) -> None:
        """Use boto3's `ssm` client."""
        self._client = client
        self._stage = stage

    def read(self, facts: Iterable[str]) -> dict[str, str]:
        """Return the facts that are set. Raises LakegateError FACTS_UNAVAILABLE."""
        names = {self._stage.parameter(fact): fact for fact in facts}
        with _translated():
            every = list(names)
            pages = [every[i : i + _AT_ONCE] for i in range(0, len(every), _AT_ONCE)]
            found = [
                p for page in pages for p in self._client.get_parameters(Names=page)["Parameters"]
            ]
        return {names[each["Name"]]: each["Value"] for each in found}

    def put(self, facts: Mapping[str, str]) -> None:
        """Set the facts. Raises LakegateError FACTS_UNAVAILABLE."""
        known = self.read(facts)
        with _translated():
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


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read or write the SSM parameters: {error}"
        raise LakegateError("FACTS_UNAVAILABLE", message) from error


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
        stacks=Stacks(client("cloudformation"), tell),
        artifacts=Artifacts(client("s3"), stage),
        facts=Facts(client("ssm"), stage),
        client=client,
        tell=tell,
    )


def has_own_platform(site: Site) -> bool:
    """Return whether the platform's facts were set, but not by Lakegate's platform stack.

    An own platform has to be declared only once, and Lakegate never builds a second one.
    """
    known = site.facts.read(PLATFORM)
    return len(known) == len(PLATFORM) and not site.stacks.exists(site.stage.platform_stack)


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
