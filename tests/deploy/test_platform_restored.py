"""Nessie's database is damaged, and restored from a snapshot by the runbook as it is written."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from functions.adapters.nessie import Catalog
from infra.local import ministack, processes
from infra.stage import Stage
from lakegate.nessie_tokens import Keys
from tests.deploy.platform import ROOT, Platforms
from tests.deploy.rds import Rds, served
from tests.deploy.test_platform_deployed import database_variables, started, storage
from tests.deploy.tools import commands
from tests.postgres import installed
from tests.waiting import PATIENCE

pytestmark = pytest.mark.stack

_TOOLS = ROOT / ".venv-deploy"
_NESSIE = "restored-nessie"
_AWS = """#!/bin/sh
[ "$1" != rds ] || set -- --endpoint-url {rds} "$@"
exec '{tools}/bin/aws' "$@"
"""


@dataclass(frozen=True)
class Restorable:
    """A stage's platform with its RDS, and what an operator's terminal has."""

    aws: Platforms
    stage: Stage
    rds: Rds
    terminal: Mapping[str, str]
    home: Path
    keys: Keys

    @property
    def database(self) -> str:
        """Return the name by which the stack knows its database."""
        return self.aws.resources(self.stage)["Database"]

    @property
    def password(self) -> str:
        """Return what the secret says that the database's password is."""
        secret = self.aws.resources(self.stage)["DatabaseSecret"]
        found = self.aws.client("secretsmanager").get_secret_value(SecretId=secret)
        return str(json.loads(found["SecretString"])["password"])

    def start_nessie(self) -> Catalog:
        """Start Nessie as a new task does: by the database's name and the secret of now."""
        url = self.rds.server(self.database).url
        own = {**storage(self.aws, self.stage), **database_variables(url, self.password)}
        server = started(self.home, self.keys.tokens, {_NESSIE: own})[_NESSIE]
        return Catalog(server.uri, server.tokens["publisher"])

    def stop_nessie(self) -> None:
        """Stop Nessie's task."""
        processes.stop(self.home, _NESSIE)

    def tasks(self) -> int:
        """Return how many tasks of Nessie the service shall have."""
        name = f"lakegate-{self.stage.name}"
        found = self.aws.client("ecs").describe_services(cluster=name, services=[f"{name}-nessie"])
        return int(found["services"][0]["desiredCount"])


def follow(terminal: Mapping[str, str], page: str, **values: str) -> None:
    """Run a page's one block of commands that sets these values, in place of its examples."""
    (block,) = [each for each in commands(page) if all(f"{name}=" in each for name in values)]
    for name, value in values.items():
        block, count = re.subn(rf"\b{name}=\S+", f"{name}={value}", block)
        assert count == 1, name
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        env=terminal,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def platform(aws: Platforms, home: Path, keys: Keys) -> Iterator[Restorable]:
    """Yield a platform whose database runs."""
    stage = aws.deploy("restored", NessiePublicKey=keys.public_key)
    with installed(home, _TOOLS) as postgres, served(rds := Rds(postgres)) as address:
        terminal = _terminal(home, aws.account.endpoint, address)
        made = Restorable(aws, stage, rds, terminal, home, keys)
        rds.create(made.database, made.password)
        try:
            yield made
        finally:
            made.stop_nessie()


def _terminal(home: Path, aws: str, rds: str) -> dict[str, str]:
    """Return the variables of a terminal with AWS's own command, where `sleep` takes no time."""
    programs = home / "bin"
    programs.mkdir()
    (programs / "sleep").symlink_to("/bin/true")
    # The command ignores RDS's address in the environment, unlike that of every other service.
    (programs / "aws").write_text(_AWS.format(rds=rds, tools=_TOOLS))
    (programs / "aws").chmod(0o700)
    owner = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    here = {"AWS_ENDPOINT_URL": aws, "AWS_DEFAULT_REGION": ministack.REGION}
    return {**owner, **here, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home)}


def test_the_runbook_brings_the_snapshots_state_back(platform: Restorable) -> None:
    """After the runbook Nessie starts by itself with the state and branches of the snapshot.

    The password was changed since the snapshot, and the damaged database is kept.
    """
    catalog = platform.start_nessie()
    catalog.begin("ops")
    catalog.create_branch("ingest/t/kept-1")
    old, database = platform.password, platform.database
    platform.rds.snapshot(database, "rds:daily", old)
    catalog.create_branch("ingest/t/lost-1")
    platform.stop_nessie()
    follow(platform.terminal, "platform.md", STAGE=platform.stage.name)
    assert platform.password != old

    told = {"STAGE": platform.stage.name, "SNAPSHOT": "rds:daily"}
    follow(platform.terminal, "restore.md", **told)
    assert platform.tasks() == 2
    assert (platform.database, platform.rds.names()) == (
        database,
        [f"{database}-damaged", database],
    )
    assert platform.start_nessie().branches("ingest/") == ["ingest/t/kept-1"]


def test_the_runbook_of_the_other_store_keeps_the_tables_names(
    aws: Platforms, tmp_path: Path, keys: Keys
) -> None:
    """Its commands leave a table of the same name, items and protection."""
    chosen = {"NessiePublicKey": keys.public_key, "NessieStore": "DYNAMODB2"}
    stage, client = aws.deploy("other", **chosen), aws.client("dynamodb")
    table = aws.resources(stage)["NessieRefsTable"]
    item = {"k": {"S": "main"}}
    client.put_item(TableName=table, Item=item)
    client.update_table(TableName=table, DeletionProtectionEnabled=True)
    terminal = _terminal(tmp_path, aws.account.endpoint, rds="none")
    follow(terminal, "restore.md", TABLE=table, AT="2026-11-29T12:00:00Z")
    assert client.scan(TableName=table)["Items"] == [item]
    assert client.describe_table(TableName=table)["Table"]["DeletionProtectionEnabled"]
    backups = client.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
