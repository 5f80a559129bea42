"""How Snowflake follows main, through a double of its SQL API that checks what it is asked."""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import jwt
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from functions.readers.marks import Marks
from functions.readers.refresh import Refresh
from functions.readers.snowflake import Snowflake
from functions.readers.snowflake_key import Login
from functions.secret_store import Secret
from lakegate.errors import Permanent, Transient
from tests.fakes import wire
from tests.fakes.marks import FakeMarks
from tests.fakes.snowflake import SnowflakeDouble, fingerprint, running

TABLE = "shop.orders"
THERE = '"LAKE"."SHOP"."ORDERS"'
KEYS = [rsa.generate_private_key(65537, 2048) for _ in range(2)]


def pem(key: rsa.RSAPrivateKey, password: str = "") -> str:
    """A private key as people put it into the secret."""
    plain = serialization.NoEncryption()
    encryption = serialization.BestAvailableEncryption(password.encode()) if password else plain
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    return key.private_bytes(*form, encryption).decode()


@dataclass
class Vault:
    """Secrets Manager with one secret; tells its own time."""

    document: dict[str, str]
    seconds: float = 0.0

    def get_secret_value(self, **_: str) -> dict[str, str]:
        """See boto3."""
        if not self.document:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return {"SecretString": json.dumps(self.document)}


@dataclass
class Bench:
    """The adapter, Snowflake, the secret, and how long the adapter waited."""

    there: SnowflakeDouble
    vault: Vault
    marks: FakeMarks = field(default_factory=FakeMarks)
    waited: list[float] = field(default_factory=list)
    tables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Log in with what the secret holds."""
        secret = Secret(self.vault, "lakegate/dev/snowflake", lambda: self.vault.seconds)
        self.snowflake = Snowflake(
            secret,
            self.marks,  # type: ignore[arg-type]
            "lake",
            lambda: datetime.now(UTC),
            self.tables,
            self.waited.append,
        )

    def refresh(self, position: int, table: str = TABLE) -> bool:
        """Have Snowflake brought to a position."""
        return self.snowflake.refresh(at(position, table))


def at(position: int, table: str = TABLE) -> Refresh:
    """A table as it is on main at a position."""
    path = f"{table.replace('.', '/')}_1/metadata/{position}.metadata.json"
    return Refresh(table, position, f"s3://lake/warehouse/{path}")


def login(there: SnowflakeDouble, key: rsa.RSAPrivateKey = KEYS[0], **more: str) -> dict[str, str]:
    """What the secret holds."""
    who = {"account": "myorg-account1", "user": "lakegate", "role": "INGEST", "warehouse": "SMALL"}
    return {**who, "database": "LAKE", "private_key": pem(key), "url": there.address, **more}


@pytest.fixture
def there() -> Iterator[SnowflakeDouble]:
    """Snowflake with one table."""
    with running(SnowflakeDouble(key=KEYS[0].public_key(), tables={THERE: ""})) as double:
        yield double


@pytest.fixture
def bench(there: SnowflakeDouble) -> Bench:
    """The adapter, logged in."""
    return Bench(there, Vault(login(there)))


def test_a_table_reads_what_was_published(bench: Bench) -> None:
    """The file is named relative to the external volume's base, in the role and warehouse given."""
    assert bench.refresh(3)
    assert bench.there.tables[THERE] == "shop/orders_1/metadata/3.metadata.json"
    (body,) = bench.there.bodies
    assert (body["role"], body["warehouse"], body["database"]) == ("INGEST", "SMALL", "LAKE")


@pytest.mark.parametrize("polls", [0, 1, 3])
def test_a_statement_is_waited_for(bench: Bench, polls: int) -> None:
    """However long it goes on, it is asked for again until it is done."""
    bench.there.polls = polls
    bench.refresh(3)
    assert bench.there.asked == ["POST", *["GET"] * polls]
    assert len(bench.waited) == polls


def test_a_statement_without_end_is_tried_again(bench: Bench) -> None:
    """Who is not done in half a minute is tried again later, and not taken for done."""
    bench.there.polls = 1000
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        bench.refresh(3)
    assert 25 < sum(bench.waited) < 40
    assert bench.marks.position(TABLE) == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=10))
def test_in_whatever_order_they_come_it_only_goes_forward(positions: Sequence[int]) -> None:
    """Of refreshes in any order, doubled or late, the newest so far is always the one read."""
    double = SnowflakeDouble(key=KEYS[0].public_key(), tables={THERE: ""}, polls=0)
    with running(double):
        bench = Bench(double, Vault(login(double)))
        for number, position in enumerate(positions, 1):
            newest, before = max(positions[:number]), positions[: number - 1]
            assert bench.refresh(position) is (position > max(before, default=0))
            assert double.tables[THERE].endswith(f"/{newest}.metadata.json")


@pytest.mark.parametrize("fault", [429, 500, 503, "lost"])
def test_what_passes_is_asked_again_under_the_same_id(bench: Bench, fault: Any) -> None:
    """An answer that did not come is asked for again, and the statement carried out once."""
    bench.there.faults = [fault]
    bench.refresh(3)
    assert len(bench.there.ran) == 1
    assert bench.there.asked[:2] == ["POST", "POST"]


@pytest.mark.parametrize("status", [302, 404, 408, 429, 500, 502, 503, 504])
def test_an_outage_is_tried_again_later(bench: Bench, status: int) -> None:
    """A Snowflake that is away fails the message alone, and notes nothing."""
    bench.there.faults = [status] * 3
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        bench.refresh(3)
    bench.there.faults = []
    assert bench.refresh(3)


def test_a_table_that_is_not_there_is_refused_for_good(bench: Bench) -> None:
    """Trying again changes nothing: people hear what Snowflake said."""
    with pytest.raises(Permanent, match=r"SNOWFLAKE_REFUSED.*002003.*RETURNS"):
        bench.refresh(3, "shop.returns")
    assert bench.there.asked == ["POST"]


def test_only_the_tables_that_are_named_are_brought_along(there: SnowflakeDouble) -> None:
    """Snowflake is asked nothing about the others."""
    bench = Bench(there, Vault(login(there)), tables=(TABLE,))
    assert not bench.refresh(3, "shop.returns")
    assert there.asked == []
    assert bench.refresh(3)


def test_names_and_paths_say_nothing_else(there: SnowflakeDouble) -> None:
    """Quotes and backslashes in names and paths end no name and no text."""
    evil = '"LA""KE; --"."S""; DROP"."ORDERS"'
    there.tables = {evil: ""}
    bench = Bench(there, Vault(login(there, database='LA"KE; --', schema='S"; DROP')))
    path = "a'; DROP TABLE x; --\\'/m.json"
    assert bench.snowflake.refresh(Refresh("shop.orders", 1, f"s3://lake/warehouse/{path}"))
    assert there.tables == {evil: path}


def test_a_file_outside_the_volume_is_refused(bench: Bench) -> None:
    """What Snowflake could never read is not asked for."""
    with pytest.raises(Permanent, match="OUTSIDE_VOLUME"):
        bench.snowflake.refresh(Refresh(TABLE, 1, "s3://other/warehouse/x.json"))


def test_a_new_key_is_read_again(bench: Bench) -> None:
    """Once Snowflake refuses the key, the secret's new version is tried at once."""
    bench.refresh(3)
    bench.vault.document = login(bench.there, KEYS[1])
    bench.there.key = KEYS[1].public_key()
    assert bench.refresh(4)


def test_a_key_that_is_replaced_meanwhile_begins_no_second_statement(bench: Bench) -> None:
    """What goes on under the old key has ended when the message comes again, and not before."""
    bench.refresh(3)
    bench.vault.document = login(bench.there, KEYS[1])
    bench.there.asked, bench.there.faults = [], ["none", 401]
    with pytest.raises(Transient, match="SNOWFLAKE_LOGIN_REFUSED"):
        bench.refresh(4)
    assert bench.there.asked == ["POST", "GET"]
    assert bench.refresh(4)


def test_a_key_that_is_refused_is_tried_again_later(bench: Bench) -> None:
    """People must put another there: the message names the secret and not what it holds."""
    bench.there.key = KEYS[1].public_key()
    with pytest.raises(Transient, match=r"SNOWFLAKE_LOGIN_REFUSED.*lakegate/dev/snowflake") as told:
        bench.refresh(3)
    assert "PRIVATE" not in str(told.value)
    assert bench.there.ran == []


def test_a_key_with_a_passphrase_is_opened(there: SnowflakeDouble) -> None:
    """An encrypted key works with its passphrase beside it."""
    secret = login(there, private_key=pem(KEYS[0], "open sesame"), passphrase="open sesame")
    assert Bench(there, Vault(secret)).refresh(3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"private_key": "no key"},
        {"private_key": ""},
        {"account": ""},
        {"private_key": pem(KEYS[0], "secret")},
    ],
    ids=["no key", "an empty key", "no account", "no passphrase"],
)
def test_a_secret_that_is_none_is_told(there: SnowflakeDouble, wrong: dict[str, str]) -> None:
    """People are told what must be in it, and nothing of what is."""
    with pytest.raises(Transient, match=r"BAD_SECRET.*lakegate/dev/snowflake") as told:
        Bench(there, Vault({**login(there), **wrong})).refresh(3)
    assert "PRIVATE" not in str(told.value)


@pytest.mark.parametrize(
    ("account", "subject", "address"),
    [
        ("myorg-my_acc", "MYORG-MY_ACC.LAKEGATE", "https://myorg-my-acc.snowflakecomputing.com"),
        ("xy1.eu-west-1", "XY1.LAKEGATE", "https://xy1.eu-west-1.snowflakecomputing.com"),
    ],
)
def test_an_account_has_two_spellings(account: str, subject: str, address: str) -> None:
    """In the token without its region and in capitals, in the address without underscores."""
    who = {"account": account, "user": "lakegate", "database": "D", "private_key": pem(KEYS[0])}
    read = Login.read(json.dumps(who), "s")
    claims = jwt.decode(read.token(datetime.now(UTC)), options={"verify_signature": False})
    assert (claims["sub"], read.address) == (subject, address)
    assert claims["iss"] == f"{subject}.{fingerprint(KEYS[0].public_key())}"


def test_a_token_ends_soon(bench: Bench) -> None:
    """A token of an hour ago is refused: each request brings a new one."""
    read = Login.read(json.dumps(bench.vault.document), "s")
    old = read.token(datetime.now(UTC) - timedelta(hours=1))
    assert not bench.there.knows(old)


@pytest.mark.parametrize("answer", wire.BROKEN_ANSWERS.values(), ids=wire.BROKEN_ANSWERS)
def test_nonsense_is_tried_again(there: SnowflakeDouble, answer: bytes) -> None:
    """Whatever a proxy answers in Snowflake's place is not taken for success."""
    with wire.answering(answer) as address:
        bench = Bench(there, Vault(login(there, url=address)))
        with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
            bench.refresh(3)
    assert bench.marks.position(TABLE) == 0


def test_a_snowflake_that_is_away_is_tried_again(there: SnowflakeDouble) -> None:
    """Where nothing answers, that is a transient error."""
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        Bench(there, Vault(login(there, url=wire.nobody()))).refresh(3)


@pytest.fixture(params=["in memory", "DynamoDB"])
def marks(request: pytest.FixtureRequest) -> Iterator[Marks | FakeMarks]:
    """Marks where nothing was put."""
    if request.param == "in memory":
        yield FakeMarks()
        return
    with mock_aws():
        made = boto3.resource("dynamodb", region_name="us-east-1").create_table(
            TableName=f"marks-{uuid.uuid4().hex}",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "table", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "table", "KeyType": "HASH"}],
        )
        yield Marks(made)


def test_a_mark_only_grows(marks: Marks | FakeMarks) -> None:
    """Of a table the largest position stays, of others nothing is known."""
    seen = []
    for position in (3, 5, 4, 5):
        marks.put(TABLE, position)
        seen.append(marks.position(TABLE))
    assert seen == [3, 5, 5, 5]
    assert marks.position("shop.returns") == 0


def test_marks_that_cannot_be_read_are_tried_again() -> None:
    """What DynamoDB refuses is transient."""
    table = boto3.resource("dynamodb", region_name="us-east-1").Table("marks")
    with Stubber(table.meta.client) as stubber:
        for method in ("get_item", "put_item"):
            stubber.add_client_error(method, "ThrottlingException")
        with pytest.raises(Transient, match="MARKS_UNAVAILABLE"):
            Marks(table).position(TABLE)
        with pytest.raises(Transient, match="MARKS_UNAVAILABLE"):
            Marks(table).put(TABLE, 1)
