"""What a deployment sets: the environment, read once into a value."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, TypeVar

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits

Of = TypeVar("Of")


@dataclass(frozen=True)
class Settings:
    """A deployment's settings, each from the variable `LAKEGATE_<NAME>`; secrets by name only.

    `nessie_uri` has no path. `job_code` is the folder on S3 with the job's release. `alert_queue`,
    `alert_dead_letters`, `announcement_queue`, `upload_dead_letters` and `job_run_dead_letters` are
    queue addresses.
    `alert_topic` is an SNS topic that is told, too, "" without one. `clean_up_role_arn` is the
    role that may delete in the lake; without it that is done as oneself.
    `max_crashes` is how many runs of one ingestion may fail without a report before people are
    told,
    `max_branches` how many fresh branches it may take in all.
    `job_worker_cores`, `job_worker_memory` (the JVM's, as in 14g) and `job_max_executors` are the
    size of one job run. Its log goes to EMR's own storage and to the CloudWatch log group
    `job_log_group`, if any. `emr_attempts` is how often EMR tries a run; more than once, it also
    tries again what was rejected.
    `grace_seconds` is how long the sweep leaves events time to do the work, `overdue_minutes` how
    long an audited file may wait for main before people are told, `keep_days` how long failed
    branches are kept. `page_url` is the quality page's address, "" without one. The `limits`
    are settings like these, each from its own variable.
    """

    landing_bucket: str
    lake_bucket: str
    ledger_table: str
    nessie_uri: str
    nessie_token_secret: str
    job_token_secret: str
    emr_application_id: str
    emr_role_arn: str
    job_code: str
    alert_queue: str
    alert_dead_letters: str
    announcement_queue: str
    upload_dead_letters: str
    job_run_dead_letters: str
    alert_topic: str = ""
    clean_up_role_arn: str = ""
    max_crashes: int = 2
    job_timeout_minutes: int = 60
    job_worker_cores: int = 4
    job_worker_memory: str = "14g"
    job_max_executors: int = 10
    emr_attempts: int = 1
    job_log_group: str = ""
    max_branches: int = 20
    grace_seconds: int = 300
    overdue_minutes: int = 180
    keep_days: int = 30
    page_url: str = ""
    limits: Limits = DEFAULTS

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Settings":
        """The settings in an environment.

        Raises Permanent MISSING_SETTING, naming every variable that must be set and is not, or
        BAD_SETTING when one must be a whole number and is not.
        """
        return replace(from_environment(cls, environment), limits=Limits.of(environment))


@dataclass(frozen=True)
class SlackSettings:
    """Where alerts are shown, each from the variable `LAKEGATE_<NAME>`.

    `slack_token_secret` is a secret's name: without it alerts go to the log. `slack_url` replaces
    Slack's own address. Without `slack_users`, who may press them, there are no buttons.
    """

    slack_token_secret: str = ""
    slack_channel: str = ""
    slack_url: str = ""
    slack_users: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "SlackSettings":
        """The settings in an environment."""
        return from_environment(cls, environment)


@dataclass(frozen=True)
class ActionSettings:
    """Who may press buttons in Slack, each from the variable `LAKEGATE_<NAME>`.

    `action_queue` is a queue's address. `slack_users` are the ids of those who may, with commas
    between them. `slack_team` is the workspace that they must be in, "" where any will do.
    """

    slack_token_secret: str
    action_queue: str
    slack_users: str = ""
    slack_team: str = ""
    slack_url: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ActionSettings":
        """The settings in an environment. Raises as Settings.of does."""
        return from_environment(cls, environment)

    @property
    def users(self) -> frozenset[str]:
        """Those who may."""
        return frozenset(filter(None, map(str.strip, self.slack_users.split(","))))


@dataclass(frozen=True)
class AlertSettings:
    """How alerts are told, each from the variable `LAKEGATE_<NAME>`.

    `threads_table` remembers what was told, a week longer than failed branches are kept, which is
    `keep_days`. For `repeat_minutes` what has the same cause goes into one thread. `alert_topic` is
    an SNS topic's ARN, "" without one.
    """

    threads_table: str
    alert_topic: str = ""
    repeat_minutes: int = 60
    keep_days: int = 30

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "AlertSettings":
        """The settings in an environment. Raises as Settings.of does."""
        return from_environment(cls, environment)


@dataclass(frozen=True)
class DigestSettings:
    """Where the weekly digest goes, from LAKEGATE_DIGEST_CHANNEL; "" is the default channel."""

    digest_channel: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "DigestSettings":
        """The settings in an environment."""
        return from_environment(cls, environment)


@dataclass(frozen=True)
class CheckupSettings:
    """What the checkup is told besides, each from the variable `LAKEGATE_<NAME>`.

    `stage` is the deployment's; the others are the addresses of queues.
    """

    stage: str
    upload_queue: str
    job_run_queue: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "CheckupSettings":
        """The settings in an environment. Raises as Settings.of does."""
        return from_environment(cls, environment)

    def token_secret(self, role: str) -> str:
        """The name of the secret with the Nessie token of a role."""
        return f"lakegate/{self.stage}/nessie/{role}"


def from_environment(kind: type[Of], environment: Mapping[str, str]) -> Of:
    """The value of a dataclass whose fields are settings. Raises as Settings.of does."""
    known: Any = kind
    given = {f.name: environment.get(f"LAKEGATE_{f.name.upper()}", "") for f in fields(known)}
    needed = {f.name for f in fields(known) if f.default is MISSING}
    missing = sorted(f"LAKEGATE_{name.upper()}" for name in needed if not given[name])
    if missing:
        raise Permanent("MISSING_SETTING", f"set these variables: {', '.join(missing)}")
    numbers = {f.name for f in fields(known) if f.type is int}
    values: dict[str, Any] = {
        name: _number(name, text) if name in numbers else text
        for name, text in given.items()
        if text
    }
    return kind(**values)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        message = f"LAKEGATE_{name.upper()} must be a whole number, not {text!r}"
        raise Permanent("BAD_SETTING", message) from error


# What a deployment sets for those who read what it publishes.


@dataclass(frozen=True)
class ReaderSettings:
    """Which readers are told of an ingestion's end, each from the variable `LAKEGATE_<NAME>`.

    `event_bus` is the name of EventBridge's bus; `glue_queue` and `snowflake_queue` are the
    addresses of the queues of those warehouses that are set up.
    """

    stage: str
    event_bus: str = "default"
    glue_queue: str = ""
    snowflake_queue: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ReaderSettings":
        """The settings in an environment. Raises as Settings.of does."""
        return from_environment(cls, environment)


@dataclass(frozen=True)
class GlueSettings:
    """How AWS Glue is brought along, each from the variable `LAKEGATE_<NAME>`.

    `glue_database_prefix` begins the databases' names; `glue_dead_letters` is a queue's address.
    """

    glue_database_prefix: str
    glue_dead_letters: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "GlueSettings":
        """The settings in an environment. Raises as Settings.of does."""
        return from_environment(cls, environment)


@dataclass(frozen=True)
class SnowflakeSettings:
    """How Snowflake is brought along, each from the variable `LAKEGATE_<NAME>`.

    `snowflake_secret` is the name of the secret with the login, `snowflake_marks` of the DynamoDB
    table with the positions; `snowflake_dead_letters` is a queue's address. `snowflake_tables` are
    those that Snowflake has, separated by commas; without any they are all. `function_timeout` is
    how many seconds the function may take.
    """

    lake_bucket: str
    snowflake_secret: str
    snowflake_marks: str
    snowflake_dead_letters: str
    function_timeout: int
    snowflake_tables: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "SnowflakeSettings":
        """The settings in an environment. Raises as Settings.of does."""
        return from_environment(cls, environment)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are named."""
        return tuple(filter(None, map(str.strip, self.snowflake_tables.split(","))))
