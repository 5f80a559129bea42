"""docs/aws.md followed to the letter from an empty stage on, with each tool that deploys.

tests/deploy/test_descriptors.py proves that osls and SAM make the same stack.
"""

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from infra.aws.losses import HOLDS
from infra.local import ministack
from lakegate.job.landing import LandedObject, ingestion_id
from tests.deploy import deployer
from tests.deploy.bare import STAGE, Cloud
from tests.deploy.tools import Checkout, commands
from tests.e2e.conftest import Gate, contract
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]  # on a busy machine

_TABLE = "shop.orders"
_ids = count(1000)
# The first finds what this machine lacks, the second tells how to rotate foreign tokens.
_ALSO = ("doctor", "rotate")


@pytest.fixture(scope="module", autouse=True)
def entered(cloud: Cloud) -> Iterator[None]:
    with cloud.entered():
        yield


def see_through(gate: Gate, name: str) -> None:
    """Assert that a good file is published, and that a bad one is rejected and alerted."""
    good = gate.drop(f"shop/orders/{name}-good.csv", b"id,amount\n1,5.0\n2,6.0\n")
    bad = gate.drop(f"shop/orders/{name}-bad.csv", b"id,amount\n3,500.0\n")

    assert gate.end(good).state is State.PUBLISHED
    rejected = gate.end(bad)
    assert rejected.state is State.REJECTED
    assert gate.alerts(rejected)


@pytest.mark.usefixtures("checkout")
def test_a_tool_deploys_an_empty_stage(cloud: Cloud) -> None:
    """A stack deployed by osls publishes a good file, and rejects and alerts a bad one."""
    gate = cloud.gate()
    gate.put_contract(contract(_TABLE, "csv", "own"))
    see_through(gate, "first")
    assert gate.rows(_TABLE) == [(1, 5.0), (2, 6.0)]


def test_every_command_in_the_guide_works(
    cloud: Cloud, checkout: Checkout, ann: dict[str, str]
) -> None:
    """The tools deploy the stack in turn, take it down, and restore it with the same data.

    osls deploys a change of the job alone, and a function alone, which keeps its settings. Whoever
    deploys needs the deployer's policies alone, except by `sam deploy`.
    """
    before, rows, known = holding(cloud), cloud.gate().rows(_TABLE), ledger(cloud)
    for script in commands("aws.md"):
        follow(cloud, checkout, script.replace("dev", STAGE.name), ann)
        if "destroy" in script:
            every = cloud.stacks.resources(STAGE.stack)
            assert not [each for each in every if "Lambda" in each.type]
        else:
            assert holding(cloud) == before

    assert cloud.gate().rows(_TABLE) == rows
    assert ledger(cloud) >= known
    see_through(cloud.gate(), "back")
    assert not reconciled(cloud.gate().adapters).problems
    for other in (f"lakegate --stage {STAGE.name} {command} || true" for command in _ALSO):
        checkout.run(other, caller=ann)
    deployer.assert_allowed_and_listed(cloud)


def follow(cloud: Cloud, checkout: Checkout, script: str, ann: dict[str, str]) -> None:
    """Run commands of the guide, and assert what some of them promise."""
    deploys = script.startswith(("lakegate deploy", "lakegate destroy", "npm run deploy"))
    caller = ann if deploys and "sam deploy" not in script else None  # which makes its own bucket
    run = partial(checkout.run, given=f"{STAGE.name}\n", caller=caller)
    if script.startswith("npm run deploy"):
        change(checkout, "spark_jobs/main.py")
        run(script)
        release = (checkout.root / "build" / "job-release.txt").read_text()
        known = function(cloud, "on-upload")["Environment"]["Variables"]
        assert known["LAKEGATE_JOB_CODE"].endswith(f"/{release}")
    elif "deploy function" in script:
        before = function(cloud, "sweep")
        # Nothing has changed since it was deployed.
        assert '"failed": 0' in run(script.replace("deploy function", "deploy function --force"))
        after = function(cloud, "sweep")
        assert after["LastModified"] > before["LastModified"]
        for setting in ("Environment", "Role", "Timeout", "MemorySize", "VpcConfig"):
            assert after.get(setting) == before.get(setting), setting
    else:
        run(script)


def change(checkout: Checkout, *code: str) -> None:
    """Change code in the checkout, without an effect."""
    for each in code:
        with (checkout.root / each).open("a") as file:
            file.write("# A later release.\n")


def function(cloud: Cloud, name: str) -> dict[str, Any]:
    """Return a deployed function's configuration."""
    client = ministack.client("lambda", cloud.at["ministack"])
    found = client.get_function_configuration(FunctionName=f"lakegate-{STAGE.name}-{name}")
    return dict(found)


def test_a_removed_stack_is_deployed_again_on_its_data(cloud: Cloud, checkout: Checkout) -> None:
    """After `osls remove` the next deployment has the same buckets, rows and ledger."""
    rows, known = cloud.gate().rows(_TABLE), ledger(cloud)
    said = checkout.run(f"npx osls remove --stage {STAGE.name}")
    assert "takes them into the next one" in said
    assert not cloud.stacks.exists(STAGE.stack)

    checkout.run(f"npm run deploy -- --stage {STAGE.name}")

    assert cloud.gate().rows(_TABLE) == rows
    assert ledger(cloud) >= known


def test_a_redeployment_in_flight_loses_and_doubles_nothing(
    cloud: Cloud, checkout: Checkout
) -> None:
    """Runs finish with the code that they were started with; later runs use the new code.

    Every file is published once, in the stack that took the data of a removed one.
    """
    gate = cloud.gate()
    before = len(gate.rows(_TABLE))
    early = [drop(gate, f"early-{number}") for number in range(3)]
    ids = [ingestion_id(landed) for landed in early]
    eventually(
        lambda: [i for i in gate.adapters.ledger.all() if i.id in ids and i.job_run], PATIENCE
    )
    change(checkout, "functions/pipeline/start/intake.py", "spark_jobs/run/ingest.py")

    checkout.run("lakegate deploy --stage local")

    late = [drop(gate, f"late-{number}") for number in range(2)]
    ended = [gate.end(landed) for landed in (*early, *late)]
    assert {each.state for each in ended} == {State.PUBLISHED}
    assert len(gate.rows(_TABLE)) == before + len(ended)
    ran = [release(cloud, each.job_run) for each in ended]
    assert set(ran[len(early) :]) == {ran[-1]}
    assert set(ran[: len(early)]) - {ran[-1]}
    assert not reconciled(cloud.gate().adapters).problems


def drop(gate: Gate, name: str) -> LandedObject:
    """Drop a file with one row."""
    return gate.drop(f"shop/orders/{name}.csv", f"id,amount\n{next(_ids)},1.0\n".encode())


def release(cloud: Cloud, run: str) -> str:
    """Return the release of the job's code that a run was started with."""
    found = cloud.gate().adapters.jobs.describe(run)
    entry_point = str(found["jobDriver"]["sparkSubmit"]["entryPoint"])
    return entry_point.split("/jobs/")[1].partition("/")[0]


def holding(cloud: Cloud) -> dict[str, str]:
    """Return the app stack's resources that hold data, with their physical ids."""
    every = cloud.stacks.resources(STAGE.stack)
    return {each.name: each.id for each in every if each.type in HOLDS}


def ledger(cloud: Cloud) -> set[str]:
    """Return the ids of the ledger's ingestions."""
    return {each.id for each in cloud.gate().adapters.ledger.all()}
