"""The settings of a deployment, read from environment variables."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from lakegate.trust import PUBLIC


class FromEnvironment:
    """A base for dataclasses whose fields are read from variables `LAKEGATE_<NAME>`."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Return the settings in an environment, with their limits if they have any.

        Raises Permanent MISSING_SETTING, naming every missing variable, or BAD_SETTING for a
        variable that must be a whole number and is not.
        """
        settings: Any = cls
        values: dict[str, Any] = {}
        missing = []
        for field in fields(settings):
            variable = f"LAKEGATE_{field.name.upper()}"
            if field.type is Limits:
                values[field.name] = Limits.of(environment)
            elif text := environment.get(variable):
                values[field.name] = _number(variable, text) if field.type is int else text
            elif field.default is MISSING:
                missing.append(variable)
        if missing:
            raise Permanent("MISSING_SETTING", f"set these variables: {', '.join(sorted(missing))}")
        return cls(**values)


def _number(variable: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        message = f"{variable} must be a whole number, not {text!r}"
        raise Permanent("BAD_SETTING", message) from error


@dataclass(frozen=True)
class Settings(FromEnvironment):
    """A deployment's settings; secrets by name only.

    `region` is AWS's, which the jobs are told.
    Shared runs start in the application `emr_shared_application_id`, which may be the other one,
    too. `nessie_uri` has no path; `nessie_ca` is the authority of its certificate (lakegate/trust).
    `job_code` is the folder on S3 with the job's release.
    `alert_queue`, `action_queue`, `alert_dead_letters`, `announcement_queue`,
    `upload_dead_letters`, `job_run_dead_letters` and `upload_queue` are queue addresses.
    `alert_topic` is an additional SNS topic for alerts, "" without one. `clean_up_role_arn` is the
    role that may delete in the lake bucket; without it the caller's role deletes.

    `max_crashes` is how many runs of one ingestion may fail without a report before it is errored,
    `max_branches` how many fresh branches it may use in all. `job_worker_cores`,
    `job_worker_memory` (the JVM's, as in 14g) and `job_max_executors` are the size of one job run;
    a file of at most `small_file_bytes` takes a small one first. `job_jars` are addresses of jars
    that the runtime lacks, separated by commas.
    `shared_runs` is how many shared runs may be up at a time, 0 for none; they take files of at
    most `small_file_bytes` from `work_queue`, report to `job_run_queue`, and end after
    `run_idle_seconds` without a file. The two queues are addresses.
    A run's log goes to EMR's own storage and to the CloudWatch log group `job_log_group`, if any.

    `daily_budget_usd` bounds what the job runs of a day cost, in whole dollars; 0 does not.

    `grace_seconds` is how long the sweep waits for events, `overdue_minutes` how long an audited
    file may wait for main before an alert, `keep_days` how long failed branches are kept.
    `page_url` is the quality page's address, "" without one. `uses_keys` is not empty where KMS
    keys encrypt what jobs read or write. `landing_bucket_arns` are buckets of others in which files
    land as well, separated by commas. `stage` names the deployment in
    metrics, and its secrets. The `limits` are read from their own variables.
    """

    landing_bucket: str
    lake_bucket: str
    ledger_table: str
    nessie_uri: str
    nessie_token_secret: str
    job_token_secret: str
    region: str
    emr_application_id: str
    emr_shared_application_id: str
    emr_role_arn: str
    job_code: str
    alert_queue: str
    alert_dead_letters: str
    announcement_queue: str
    upload_dead_letters: str
    job_run_dead_letters: str
    action_queue: str = ""
    alert_topic: str = ""
    clean_up_role_arn: str = ""
    max_crashes: int = 2
    job_timeout_minutes: int = 60
    job_worker_cores: int = 4
    job_worker_memory: str = "14g"
    job_max_executors: int = 10
    job_jars: str = ""
    small_file_bytes: int = 32 * 1024 * 1024
    job_log_group: str = ""
    shared_runs: int = 0
    run_idle_seconds: int = 60
    upload_queue: str = ""
    work_queue: str = ""
    job_run_queue: str = ""
    max_branches: int = 20
    daily_budget_usd: int = 0
    grace_seconds: int = 300
    overdue_minutes: int = 180
    keep_days: int = 30
    page_url: str = ""
    uses_keys: str = ""
    landing_bucket_arns: str = ""
    nessie_ca: str = PUBLIC
    stage: str = ""
    limits: Limits = DEFAULTS

    @property
    def emr_applications(self) -> tuple[str, ...]:
        """Return each EMR application once, that of own runs first."""
        return tuple(dict.fromkeys((self.emr_application_id, self.emr_shared_application_id)))

    @property
    def landing_buckets(self) -> tuple[str, ...]:
        """Return every bucket in which files land, the stage's own first."""
        arns = filter(None, self.landing_bucket_arns.split(","))
        return (self.landing_bucket, *(arn.rpartition(":")[2] for arn in arns))

    def token_secret(self, role: str) -> str:
        """Return the name of the secret with the Nessie token of a role."""
        return f"lakegate/{self.stage}/nessie/{role}"


@dataclass(frozen=True)
class SlackSettings(FromEnvironment):
    """The Slack workspace for alerts.

    `slack_token_secret` is a secret's name; without it alerts go to the log. `slack_url` replaces
    Slack's address. `slack_users` may press buttons; without them there are no buttons.
    """

    slack_token_secret: str = ""
    slack_channel: str = ""
    slack_url: str = ""
    slack_users: str = ""


@dataclass(frozen=True)
class ActionSettings(FromEnvironment):
    """The permissions for buttons in Slack.

    `action_queue` is a queue's address. `slack_users` are the ids of the permitted users, separated
    by commas. `slack_team` is their workspace, "" for any.
    """

    slack_token_secret: str
    action_queue: str
    slack_users: str = ""
    slack_team: str = ""
    slack_url: str = ""

    @property
    def users(self) -> frozenset[str]:
        """Return the ids of the permitted users."""
        return frozenset(filter(None, map(str.strip, self.slack_users.split(","))))


@dataclass(frozen=True)
class AlertSettings(FromEnvironment):
    """The threads and topic of alerts.

    `threads_table` records notifications for a week longer than `keep_days`, for which failed
    branches are kept. Alerts with the same cause share a thread for `repeat_minutes`. `alert_topic`
    is an SNS topic's ARN, "" without one. `alert_queue` is the queue's address, "" where
    an earlier release was deployed.
    """

    threads_table: str
    alert_topic: str = ""
    alert_queue: str = ""
    repeat_minutes: int = 60
    keep_days: int = 30


@dataclass(frozen=True)
class NessieSettings(FromEnvironment):
    """The address of Nessie, without a path, for the function that forwards requests to it."""

    nessie_uri: str


@dataclass(frozen=True)
class RotateSettings(FromEnvironment):
    """The deployment's stage, whose tokens are renewed."""

    stage: str


@dataclass(frozen=True)
class ConsumerSettings(FromEnvironment):
    """The consumers to notify of an ingestion's final state.

    `event_bus` is the name of EventBridge's bus; `glue_queue` and `snowflake_queue` are the
    addresses of the refresh queues that are set up, `lineage_queue` that of OpenLineage's queue.
    """

    stage: str
    event_bus: str = "default"
    glue_queue: str = ""
    snowflake_queue: str = ""
    lineage_queue: str = ""


@dataclass(frozen=True)
class LineageSettings(FromEnvironment):
    """The settings for OpenLineage.

    `lineage_url` is the address to which events are sent, `lineage_secret` the name of the secret
    with its API key, "" without one; `lineage_dead_letters` is a queue's address. Of the `limits`,
    those of contracts and reports are the stage's.
    """

    lake_bucket: str
    lineage_url: str
    lineage_dead_letters: str
    lineage_secret: str = ""
    limits: Limits = DEFAULTS


@dataclass(frozen=True)
class GlueSettings(FromEnvironment):
    """The settings for AWS Glue.

    `glue_database_prefix` begins the databases' names; `glue_dead_letters` is a queue's address.
    """

    glue_database_prefix: str
    glue_dead_letters: str


@dataclass(frozen=True)
class SnowflakeSettings(FromEnvironment):
    """The settings for Snowflake.

    `snowflake_secret` is the name of the secret with the login, `snowflake_marks` that of the
    DynamoDB table with the leases; `snowflake_dead_letters` is a queue's address.
    `snowflake_tables` limits the refreshed tables (separated by commas); empty means all.
    `function_timeout` is the function's timeout in seconds.
    """

    lake_bucket: str
    snowflake_secret: str
    snowflake_marks: str
    snowflake_dead_letters: str
    function_timeout: int
    snowflake_tables: str = ""

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables; empty for all."""
        return tuple(filter(None, map(str.strip, self.snowflake_tables.split(","))))
