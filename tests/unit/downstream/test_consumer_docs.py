"""What docs/warehouse.md shows is taken: settings, event, rule, secret, SQL."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from typer.testing import CliRunner

from cli.main import app
from cli.snowflake import Names, ddl
from functions.downstream.snowflake_login import Login
from functions.downstream.snowflake_sql import Place, base_url, refresh, relative
from functions.settings import SnowflakeSettings
from infra import template
from lakegate.errors import Permanent
from tests.compiled import ACCOUNT, Compiled
from tests.fakes.schema import validate_announcement

ROOT = Path(__file__).parents[3]
TEXT = re.sub(r"^   ", "", (ROOT / "docs" / "warehouse.md").read_text(), flags=re.MULTILINE)


def blocks(language: str) -> list[str]:
    """Return the guide's examples in a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


APP = Compiled.of(ROOT / "template.yaml", GlueDatabasePrefix="lake_", SnowflakeSecret="s")
EVENT, RULE, SECRET = (json.loads(block) for block in blocks("json"))


def matches(pattern: Any, value: Any) -> bool:
    """Return whether EventBridge lets an event through (Amazon EventBridge, "Event patterns")."""
    if isinstance(pattern, list):
        return value in pattern
    return all(name in value and matches(each, value[name]) for name, each in pattern.items())


def test_the_settings_are_the_templates() -> None:
    """Every setting that the guide names is a parameter that takes the value."""
    known = template.read(ROOT / "template.yaml")["Parameters"]
    (settings,) = (yaml.safe_load(block) for block in blocks("yaml"))
    for name, value in settings.items():
        assert re.fullmatch(known[name].get("AllowedPattern", ".*"), value), name


def test_the_event_is_one() -> None:
    """The event that is shown fits the schema, and the rule that is shown lets it through."""
    validate_announcement(EVENT["detail"])
    assert matches(RULE, EVENT)
    assert not matches(RULE, {**EVENT, "detail-type": "Lakegate Ingestion Rejected"})


def test_the_secret_is_one() -> None:
    """With a key in its place the secret that is shown is a login."""
    made = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    login = Login.read(json.dumps({**SECRET, "private_key": made.decode()}), "secret")
    assert login.address == "https://myorg-myaccount.snowflakecomputing.com"


def test_the_sql_is_what_is_printed_and_sent() -> None:
    """The guide's statements are the ones of `ddl` and of the function, for its own event."""
    detail, place = EVENT["detail"], Place("LAKE")
    bucket = detail["metadata_location"].split("/")[2]
    path = relative(detail["metadata_location"], base_url(bucket))
    names = Names(place, "LAKEGATE", "LAKEGATE", "arn:aws:iam::123456789012:role/reader")
    statements = list(ddl(names, bucket, {detail["table"]: detail["metadata_location"]}))
    shown = blocks("sql")
    assert f"{statements[-1]};\n" in shown
    assert f"{refresh(place, detail['table'], path)}\n" in shown


def test_the_owner_makes_the_tables() -> None:
    """Volume and integration come first; then the role that refreshes makes its own tables."""
    names = Names(Place("LAKE", "ALL"), "R", "V", "arn")
    files = {f"shop.{t}": f"s3://lake/warehouse/{t}/m.json" for t in ("orders", "returns")}
    verbs = [" ".join(each.split()[:3]) for each in ddl(names, "lake", files)]
    role = verbs.index('USE ROLE "R"')
    assert verbs[role + 1 :] == ["CREATE ICEBERG TABLE"] * 2
    assert {"CREATE EXTERNAL VOLUME", "CREATE CATALOG INTEGRATION"} <= set(verbs[:role])
    assert verbs.count("CREATE SCHEMA IF") == 1


def test_tables_of_one_name_are_not_written_down() -> None:
    """The second would be left out by IF NOT EXISTS, and its refreshes go to the first."""
    files = {t: f"s3://lake/warehouse/{t}/m.json" for t in ("shop.orders", "Shop.Orders")}
    with pytest.raises(Permanent, match=r"NAME_TAKEN: Shop\.Orders and shop\.orders"):
        list(ddl(Names(Place("LAKE"), "R", "V", "arn"), "lake", files))


def test_a_refresh_has_what_it_needs() -> None:
    """Snowflake's function knows how long it may take itself, and may keep its marks."""
    function = APP.resources["OnSnowflakeLambdaFunction"]["Properties"]
    told = APP.resolve(function["Environment"]["Variables"])
    known = SnowflakeSettings.of({name: str(value) for name, value in told.items()})
    assert known.function_timeout == int(APP.resolve(function["Timeout"]))
    role, marks = APP.roles()["OnSnowflakeRole"], APP.arn("SnowflakeMarks")
    may = [a for a in ("Get", "Update", "Put", "Delete") if role.may(f"dynamodb:{a}Item", marks)]
    assert may == ["Get", "Update"]


def redrive(reader: str) -> str:
    """What moves a reader's dead letters: SQS itself does not know where a sent one came from."""
    dead, queue = APP.arn(f"{reader}DeadLetters"), APP.arn(f"{reader}Queue")
    return f"aws sqs start-message-move-task --source-arn {dead} --destination-arn {queue}"


@pytest.mark.parametrize("reader", ["Announcement", "Glue", "Snowflake"])
def test_an_alarm_says_how_letters_are_tried_again(reader: str) -> None:
    """Its text has the command for its own queues, and is no longer than CloudWatch takes."""
    alarm = APP.resources[f"{reader}DeadLettersAlarm"]["Properties"]
    told = APP.resolve(alarm["AlarmDescription"])
    assert told.endswith(f": {redrive(reader)}")
    assert len(told) <= 1024


def test_the_command_is_the_alarms() -> None:
    """The command that is shown is the one of Snowflake's alarm, in another account."""
    shown = blocks("sh")[-1].replace("eu-central-1:123456789012", f"us-east-1:{ACCOUNT}")
    assert " ".join(shown.replace("\\\n", "").split()) == redrive("Snowflake")


@pytest.mark.parametrize(
    "given", ["x", "arn:aws:iam::123456789012:user/ada", "arn:aws:iam:::role/r"]
)
def test_a_role_that_is_none_is_refused(given: str) -> None:
    """A mistyped ARN is told before anybody runs the SQL."""
    done = CliRunner().invoke(app, ["snowflake", "ddl", "--aws-role", given])
    assert done.exit_code == 2
    assert "ARN" in done.stderr
