"""How Snowflake follows main, through a double of its SQL API that checks what it is asked."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from functions.adapters.secrets import Secret
from functions.downstream.refresh_lease import Lease, Marks
from functions.downstream.snowflake import Snowflake
from functions.downstream.snowflake_login import Login
from functions.downstream.snowflake_sql import Place, refuse_clashes
from functions.model.announcement import Refresh
from lakegate.errors import Permanent, Transient
from tests.fakes import wire
from tests.fakes.marks import FakeMarks
from tests.fakes.snowflake import SnowflakeDouble, fingerprint, running

TABLE = "shop.orders"
THERE = '"LAKE"."SHOP"."ORDERS"'
FUNCTION_TIMEOUT = 60
LONGEST = FUNCTION_TIMEOUT + 30  # that a statement of a function's may go on
NOW = datetime(2026, 3, 1, tzinfo=UTC)
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
    """The adapter, Snowflake, the secret, and how long the adapter waited.

    `looked` and `waiting` happen once: before it takes the lease, and while Snowflake is at work.
    """

    there: SnowflakeDouble
    vault: Vault
    marks: Marks | FakeMarks = field(default_factory=FakeMarks)
    waited: list[float] = field(default_factory=list)
    tables: tuple[str, ...] = ()
    looked: Callable[[], object] | None = None
    waiting: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        """Log in with what the secret holds."""
        secret = Secret(self.vault, "lakegate/dev/snowflake", lambda: self.vault.seconds)
        marks: Any = self.marks
        self.snowflake = Snowflake(
            secret, marks, "lake", self._now, FUNCTION_TIMEOUT, self.tables, self._pause
        )

    def _now(self) -> datetime:
        happens, self.looked = self.looked, None
        if happens:
            happens()
        return self.there.now()

    def _pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        happens, self.waiting = self.waiting, None
        if happens:
            happens()

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


def later(bench: Bench) -> None:
    """Let the time go by after which a message comes again."""
    bench.there.ahead += timedelta(seconds=6 * FUNCTION_TIMEOUT)


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
    bench.there.polls = 0
    later(bench)
    assert bench.refresh(3)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 6), min_size=1, max_size=10))
def test_in_whatever_order_they_come_it_only_goes_forward(
    there: SnowflakeDouble, positions: Sequence[int]
) -> None:
    """Of refreshes in any order, doubled or late, the newest so far is always the one read."""
    there.polls = 0
    bench = Bench(there, Vault(login(there)))
    for number, position in enumerate(positions, 1):
        newest, before = max(positions[:number]), positions[: number - 1]
        assert bench.refresh(position) is (position > max(before, default=0))
        assert there.tables[THERE].endswith(f"/{newest}.metadata.json")


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
    later(bench)
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
    evil = '"LA""KE; --"."S""; DROP"."SHOP$ORDERS"'
    there.tables = {evil: ""}
    bench = Bench(there, Vault(login(there, database='LA"KE; --', schema='S"; DROP')))
    path = "a'; DROP TABLE x; --\\'/m.json"
    assert bench.snowflake.refresh(Refresh("shop.orders", 1, f"s3://lake/warehouse/{path}"))
    assert there.tables == {evil: path}


def test_no_table_is_brought_where_another_one_is(bench: Bench) -> None:
    """Snowflake is asked nothing for a table whose name there is another one's."""
    bench.refresh(3)
    with pytest.raises(Permanent, match=r"NAME_TAKEN: Shop\.Orders and shop\.orders are one"):
        bench.refresh(4, "Shop.Orders")
    assert len(bench.there.ran) == 1


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}\.[a-z][a-z0-9_]{0,6}", fullmatch=True)


@given(st.sets(NAMES | st.sampled_from(["a.b_c", "a_b.c"]), min_size=2))
@pytest.mark.parametrize("place", [Place("LAKE"), Place("LAKE", "ALL")])
def test_two_tables_have_two_names(place: Place, tables: set[str]) -> None:
    """Of tables that do not differ in capitals alone no two are one, whatever the namespaces."""
    assert len({place.table(table) for table in tables}) == len(tables)
    refuse_clashes(place, tables)


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
    later(bench)
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
    later(bench)
    assert Bench(there, Vault(login(there)), bench.marks).refresh(3)


def test_a_snowflake_that_is_away_is_tried_again(there: SnowflakeDouble) -> None:
    """Where nothing answers, that is a transient error."""
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        Bench(there, Vault(login(there, url=wire.nobody()))).refresh(3)


@contextmanager
def dynamodb() -> Iterator[Any]:
    """A table for marks, in this process."""
    with mock_aws():
        yield boto3.resource("dynamodb", region_name="us-east-1").create_table(
            TableName=f"marks-{uuid.uuid4().hex}",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "table", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "table", "KeyType": "HASH"}],
        )


class Killed(BaseException):
    """The function dies where it stands."""


def die() -> None:
    """Die."""
    raise Killed


@pytest.fixture(params=["in memory", "DynamoDB"])
def marks(request: pytest.FixtureRequest) -> Iterator[Marks | FakeMarks]:
    """Marks where nothing was put."""
    if request.param == "in memory":
        yield FakeMarks()
        return
    with dynamodb() as table:
        yield Marks(table)


def seconds(number: int) -> timedelta:
    """So many of them."""
    return timedelta(seconds=number)


def test_a_mark_only_grows(marks: Marks | FakeMarks) -> None:
    """Who is as far already, or once began something newer, has no lease for what is older."""
    for position in (3, 5):
        lease = marks.lease(TABLE, position, NOW, 10)
        assert lease
        marks.done(lease)
        assert [marks.lease(TABLE, older, NOW, 10) for older in (3, position)] == [None, None]
    assert marks.lease(TABLE, 9, NOW, 10)
    assert marks.lease(TABLE, 8, NOW + seconds(20), 10) is None
    assert marks.lease("shop.returns", 1, NOW, 10)


def test_a_lease_is_one_holders(marks: Marks | FakeMarks) -> None:
    """Until it is freed or ends nobody else has it, whatever for; other tables are free."""
    lease = marks.lease(TABLE, 3, NOW, 10)
    for position, after in ((3, 0), (3, 9), (4, 9)):
        with pytest.raises(Transient, match=f"LEASED.*{TABLE}"):
            marks.lease(TABLE, position, NOW + seconds(after), 10)
    assert marks.lease("shop.returns", 3, NOW, 10)
    assert lease
    marks.free(lease)
    assert marks.lease(TABLE, 3, NOW, 10)


def test_a_lease_ends(marks: Marks | FakeMarks) -> None:
    """Of a holder that died it ends by itself; what that one says later is not taken."""
    dead = marks.lease(TABLE, 3, NOW, 10)
    assert dead
    alive = marks.lease(TABLE, 3, NOW + seconds(10), 10)
    with pytest.raises(Transient, match="LEASED"):
        marks.done(dead)
    marks.free(dead)
    with pytest.raises(Transient, match="LEASED"):
        marks.lease(TABLE, 3, NOW + seconds(19), 10)
    assert alive
    marks.done(alive)
    assert marks.lease(TABLE, 3, NOW + seconds(19), 10) is None


def test_a_name_is_one_tables(marks: Marks | FakeMarks) -> None:
    """Which differ in capitals alone are one to a warehouse: the second is refused, both named."""
    lease = marks.lease("shop.Orders", 3, NOW, 10)
    assert lease
    marks.done(lease)
    with pytest.raises(Permanent, match=r"NAME_TAKEN: shop\.orders and shop\.Orders are one"):
        marks.lease("shop.orders", 4, NOW, 10)
    assert marks.lease("shop.Orders", 4, NOW, 10)


def test_a_lease_whose_answer_was_lost_is_had() -> None:
    """boto3 asks again by itself: that the holder has it already is no refusal."""
    with dynamodb() as marks:
        lost = iter([0.0])
        marks.meta.client.meta.events.register_first(
            "needs-retry.dynamodb.UpdateItem", lambda **_: next(lost, None)
        )
        assert Marks(marks).lease(TABLE, 3, NOW, 10)
        assert next(lost, None) is None


def test_of_two_at_once_one_leaves_it_for_later(
    there: SnowflakeDouble, marks: Marks | FakeMarks
) -> None:
    """While a refresh goes on Snowflake is asked for no other of the table."""
    first, second = (Bench(there, Vault(login(there)), marks) for _ in range(2))

    def meanwhile() -> None:
        for position in (3, 4):
            with pytest.raises(Transient, match="LEASED"):
                second.refresh(position)
        assert not second.refresh(2)

    first.waiting = meanwhile
    assert first.refresh(3)
    assert len(there.ran) == 1
    assert second.refresh(4)
    assert there.tables[THERE].endswith("/4.metadata.json")


def test_whoever_has_the_lease_looks_again(
    there: SnowflakeDouble, marks: Marks | FakeMarks
) -> None:
    """What was newer when it looked may be older now, and is not sent then."""
    first, second = (Bench(there, Vault(login(there)), marks) for _ in range(2))
    first.looked = lambda: second.refresh(4)
    assert not first.refresh(3)
    assert len(there.ran) == 1
    assert first.refresh(5)


def test_who_died_is_waited_for(there: SnowflakeDouble, marks: Marks | FakeMarks) -> None:
    """As long as the function could be at work, and then what it had Snowflake begin."""
    bench = Bench(there, Vault(login(there)), marks, waiting=die)
    with pytest.raises(Killed):
        bench.refresh(3)
    there.ahead = timedelta(seconds=LONGEST)
    with pytest.raises(Transient, match="LEASED"):
        bench.refresh(4)
    later(bench)
    assert bench.refresh(4)


def test_what_is_refused_holds_up_nobody(bench: Bench) -> None:
    """Nothing goes on of a statement that Snowflake refuses: the next refresh begins at once."""
    there = bench.there.tables.pop(THERE)
    with pytest.raises(Permanent, match="SNOWFLAKE_REFUSED"):
        bench.refresh(3)
    bench.there.tables[THERE] = there
    assert bench.refresh(4)


STEPS = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.sampled_from(["alone", "looked", "waiting", "dies"]),
        st.sampled_from([0, 25, 65, LONGEST - 1, 6 * FUNCTION_TIMEOUT]),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@example([(1, "looked", 0), (1, "dies", 6 * FUNCTION_TIMEOUT), (2, "alone", 0)])
def test_however_functions_meet_it_only_goes_forward(
    there: SnowflakeDouble, steps: Sequence[tuple[int, str, int]]
) -> None:
    """They overlap anywhere and die with a statement under way: no older file after a newer."""
    marks, left, before = FakeMarks(), list(steps), len(there.ran)

    def step() -> None:
        if not left:
            return
        position, how, passes = left.pop(0)
        bench = Bench(there, Vault(login(there)), marks)
        bench.looked = step if how == "looked" else None
        bench.waiting = {"waiting": step, "dies": die}.get(how)
        there.hangs = how == "dies"
        with suppress(Killed, Transient):
            bench.refresh(position)
        there.ahead += seconds(passes)
        there.go_on()

    while left:
        step()
    there.ahead += seconds(LONGEST)
    there.go_on()
    seen = [int(re.findall(r"(\d+)\.metadata", sql)[0]) for sql in there.ran[before:]]
    assert seen == sorted(seen)


def test_marks_that_cannot_be_read_are_tried_again() -> None:
    """What DynamoDB refuses is transient."""
    table = boto3.resource("dynamodb", region_name="us-east-1").Table("marks")
    with Stubber(table.meta.client) as stubber:
        stubber.add_client_error("update_item", "ConditionalCheckFailedException")
        for method in ("get_item", *["update_item"] * 3):
            stubber.add_client_error(method, "ThrottlingException")
        lease = Lease(TABLE, 1, "holder")
        for call in (
            *[lambda: Marks(table).lease(TABLE, 1, NOW, 10)] * 2,
            lambda: Marks(table).done(lease),
            lambda: Marks(table).free(lease),
        ):
            with pytest.raises(Transient, match="MARKS_UNAVAILABLE"):
                call()
