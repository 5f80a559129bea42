"""What a deployment sets for those who read what it publishes."""

from collections.abc import Mapping
from dataclasses import dataclass

from functions.settings import from_environment


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
