"""Whatever is decided beside a mend, and wherever it dies, rows come to main once."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.errors import LakegateError
from tests.fakes.faults import Fault, ProcessDied, When, die, unavailable
from tests.fakes.job import passed
from tests.fakes.scenario import Scenario
from tests.unit.access.mending.rejected_files import NAME, Rejected

pytestmark = pytest.mark.usefixtures("quiet")

BODY, BROKEN = b"id\n1\nx\ny\n", {3: "no number", 4: "no number"}
CORRECTIONS = [b"_line,_reason,id\n3,,2\n", b"_line,_reason,id\n3,,2\n4,,3\n"]
Step = Callable[[Rejected], object]


def fault(call: str, when: When, error: Callable[[], object]) -> Step:
    """Return the step after which the next call of that name fails, or its process dies."""
    return lambda file: file.deployment.journal.strike(call, Fault(error, when))


def meanwhile(when: When, decide: Callable[..., object]) -> Step:
    """Return the step after which somebody decides about the file while the next one is put."""

    def step(file: Rejected) -> None:
        def decided() -> None:
            with suppress(LakegateError):
                decide(file.deployment, file.landed)

        file.deployment.journal.strike("landing.put_over", Fault(decided, when))

    return step


STEPS: dict[str, Step] = {
    "mend": lambda file: file.mend(CORRECTIONS[0]),
    "mend otherwise": lambda file: file.mend(CORRECTIONS[1]),
    "publish anyway": lambda file: file.deployment.publish_anyway(file.landed),
    "replay": lambda file: file.deployment.replay(file.landed),
    "deliver": lambda file: file.deployment.deliver(),
    "run jobs": lambda file: file.deployment.run_jobs(),
    "publish before the put": meanwhile("before", Scenario.publish_anyway),
    "publish after the put": meanwhile("after", Scenario.publish_anyway),
    "replay before the put": meanwhile("before", Scenario.replay),
    "replay after the put": meanwhile("after", Scenario.replay),
    "die before the put": fault("landing.put_over", "before", die),
    "die after the put": fault("landing.put_over", "after", die),
    "lose the answer": fault("landing.put_over", "after", unavailable),
    "die before it is begun": fault("ledger.begin", "before", die),
    "die after the claim": fault("ledger.save", "after", die),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))
def test_either_the_rejected_or_one_mended_version_is_published(names: list[str]) -> None:
    """Of all versions of the key at most one is on main, and nothing is left undecided half-way."""
    with TemporaryDirectory() as folder:
        file = Rejected(Scenario(), BODY, BROKEN, Path(folder))
        file.deployment.script(file.landed, passed)
        for name in names:
            with suppress(LakegateError, ProcessDied):
                STEPS[name](file)
        file.deployment.check()
        versions = [each for each in file.deployment.landing.landed() if each.key == NAME]
        assert sum(file.deployment.on_main(*versions)) <= 1
        assert len(versions) <= 2
