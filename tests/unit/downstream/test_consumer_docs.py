"""The examples in docs/warehouse.md work: settings, event, rule, secret and SQL."""

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
from cli.tables.snowflake import Names, ddl
from functions.downstream.snowflake_login import Login
from functions.downstream.snowflake_sql import Place, base_url, refresh, relative
from functions.on_lineage import target
from functions.settings import LineageSettings, SnowflakeSettings
from infra import template
from lakegate.errors import Permanent
from lakegate.limits import Limits
from tests.compiled import ACCOUNT, Compiled
from tests.fakes.schema import validate_announcement

ROOT = Path(__file__).parents[3]
TEXT = re.sub(r"^   ", "", (ROOT / "docs" / "warehouse.md").read_text(), flags=re.MULTILINE)


def blocks(language: str) -> list[str]:
    """Return the guide's examples in a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


LINEAGE = {"LineageUrl": "https://marquez.example.org/api/v1/lineage", "LineageSecret": "key"}
APP = Compiled.of(
    ROOT / "template.yaml", GlueDatabasePrefix="lake_", SnowflakeSecret="s", **LINEAGE
)
EVENT, RULE, SECRET = (json.loads(block) for block in blocks("json"))


def matches(pattern: Any, value: Any) -> bool:
    """Return whether an event matches a pattern (Amazon EventBridge, "Event patterns")."""
    if isinstance(pattern, list):
        return value in pattern
    return all(name in value and matches(each, value[name]) for name, each in pattern.items())


def test_the_settings_are_the_templates() -> None:
    """Every setting in the guide is a parameter that accepts its value."""
    known = template.read(ROOT / "template.yaml")["Parameters"]
    (settings,) = (yaml.safe_load(block) for block in blocks("yaml"))
    for name, value in settings.items():
        assert re.fullmatch(known[name].get("AllowedPattern", ".*"), value), name


def test_the_event_is_one() -> None:
    """The example event matches the schema and the example rule."""
    validate_announcement(EVENT["detail"])
    assert matches(RULE, EVENT)
    assert not matches(RULE, {**EVENT, "detail-type": "Lakegate Ingestion Rejected"})


def test_the_secret_is_one() -> None:
    """The example secret with a key is a valid login."""
    made = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    login = Login.read(json.dumps({**SECRET, "private_key": made.decode()}), "secret")
    assert login.address == "https://myorg-myaccount.snowflakecomputing.com"


def test_the_sql_is_what_is_printed_and_sent() -> None:
    """The guide's statements are those that `ddl` prints and the function sends."""
    detail, place = EVENT["detail"], Place("LAKE")
    bucket = detail["metadata_location"].split("/")[2]
    path = relative(detail["metadata_location"], base_url(bucket))
    names = Names(place, "LAKEGATE", "LAKEGATE", "arn:aws:iam::123456789012:role/reader")
    statements = list(ddl(names, bucket, {detail["table"]: detail["metadata_location"]}))
    shown = blocks("sql")
    assert f"{statements[-1]};\n" in shown
    assert f"{refresh(place, detail['table'], path)}\n" in shown


def test_the_owner_makes_the_tables() -> None:
    """Volume and integration come first; then the refreshing role creates its tables."""
    names = Names(Place("LAKE", "ALL"), "R", "V", "arn")
    files = {f"shop.{t}": f"s3://lake/warehouse/{t}/m.json" for t in ("orders", "returns")}
    verbs = [" ".join(each.split()[:3]) for each in ddl(names, "lake", files)]
    role = verbs.index('USE ROLE "R"')
    assert verbs[role + 1 :] == ["CREATE ICEBERG TABLE"] * 2
    assert {"CREATE EXTERNAL VOLUME", "CREATE CATALOG INTEGRATION"} <= set(verbs[:role])
    assert verbs.count("CREATE SCHEMA IF") == 1


def test_tables_of_one_name_are_not_written_down() -> None:
    """Tables with equal names are refused: IF NOT EXISTS would skip the second."""
    files = {t: f"s3://lake/warehouse/{t}/m.json" for t in ("shop.orders", "Shop.Orders")}
    with pytest.raises(Permanent, match=r"NAME_TAKEN: Shop\.Orders and shop\.orders"):
        list(ddl(Names(Place("LAKE"), "R", "V", "arn"), "lake", files))


def test_a_refresh_has_what_it_needs() -> None:
    """Snowflake's function knows its own timeout and may write its leases."""
    function = APP.resources["OnSnowflakeLambdaFunction"]["Properties"]
    variables = APP.resolve(function["Environment"]["Variables"])
    known = SnowflakeSettings.of({name: str(value) for name, value in variables.items()})
    assert known.function_timeout == int(APP.resolve(function["Timeout"]))
    role, marks = APP.roles()["OnSnowflakeRole"], APP.arn("SnowflakeMarks")
    may = [a for a in ("Get", "Update", "Put", "Delete") if role.may(f"dynamodb:{a}Item", marks)]
    assert may == ["Get", "Update"]


def test_lineage_has_what_it_needs() -> None:
    """OpenLineage's function knows its address, and reads reports and contracts, and no rows."""
    function = APP.resources["OnLineageLambdaFunction"]["Properties"]
    variables = APP.resolve(function["Environment"]["Variables"])
    known = LineageSettings.of({name: str(value) for name, value in variables.items()})
    assert (known.lineage_url, known.lineage_secret) == tuple(LINEAGE.values())
    role, lake = APP.roles()["OnLineageRole"], APP.arn("LakeBucket")
    folders = ("reports", "contracts", "warehouse", "changes")
    read = [at for at in folders if role.may("s3:GetObject", f"{lake}/{at}/a.json")]
    assert read == ["reports", "contracts"]
    assert APP.roles()["OnAnnouncementRole"].may("sqs:SendMessage", APP.arn("LineageQueue"))


def test_lineage_reads_what_the_stage_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stage with higher limits takes is not left out of its events."""
    higher = {"LargestReport": 1 << 26, "LargestContract": 1 << 21, "MostContractValues": 60_000}
    given = {name: str(value) for name, value in higher.items()}
    app = Compiled.of(ROOT / "template.yaml", **LINEAGE, **given)
    function = app.resources["OnLineageLambdaFunction"]["Properties"]
    variables = app.resolve(function["Environment"]["Variables"])
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    target.cache_clear()
    assert target().lake.limits == Limits.chosen(given)
    target.cache_clear()


def test_without_an_address_there_is_no_lineage() -> None:
    """A stage without the setting has no function, no queue and no alarm for OpenLineage."""
    plain = Compiled.of(ROOT / "template.yaml")
    lineage = [plain.resources[name] for name in plain.resources if "Lineage" in name]
    assert len(lineage) == 10
    assert not any(plain.holds(each["Condition"]) for each in lineage)
    announcing = plain.resources["OnAnnouncementLambdaFunction"]["Properties"]
    assert "LAKEGATE_LINEAGE_QUEUE" not in plain.resolve(announcing["Environment"]["Variables"])


def redrive(reader: str) -> str:
    """Return the command that retries a consumer's dead letters to a named queue."""
    dead, queue = APP.arn(f"{reader}DeadLetters"), APP.arn(f"{reader}Queue")
    return f"aws sqs start-message-move-task --source-arn {dead} --destination-arn {queue}"


@pytest.mark.parametrize("reader", ["Announcement", "Glue", "Snowflake", "Lineage"])
def test_an_alarm_says_how_messages_are_tried_again(reader: str) -> None:
    """An alarm's text has the command for its queues, within CloudWatch's limit."""
    alarm = APP.resources[f"{reader}DeadLettersAlarm"]["Properties"]
    text = APP.resolve(alarm["AlarmDescription"])
    assert text.endswith(f": {redrive(reader)}")
    assert len(text) <= 1024


def test_the_command_is_the_alarms() -> None:
    """The guide's command is the one of Snowflake's alarm."""
    shown = blocks("sh")[-1].replace("eu-central-1:123456789012", f"us-east-1:{ACCOUNT}")
    assert " ".join(shown.replace("\\\n", "").split()) == redrive("Snowflake")


@pytest.mark.parametrize(
    "given", ["x", "arn:aws:iam::123456789012:user/ada", "arn:aws:iam:::role/r"]
)
def test_a_role_that_is_none_is_refused(given: str) -> None:
    """An invalid ARN is refused before any SQL is run."""
    done = CliRunner().invoke(app, ["snowflake", "ddl", "--aws-role", given])
    assert done.exit_code == 2
    assert "ARN" in done.stderr
