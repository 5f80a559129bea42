"""A deployment whose Nessie deviates is stopped with the sentence and the remedy."""

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cli.operate.conformance import require_conformance
from functions.health.model import Finding, fail, ok
from infra import checkup, template
from lakegate.errors import LakegateError

_LONGEST = 900  # seconds that a function of Lambda may run


class Functions:
    """Lambda with functions that have prepared answers, by their names."""

    def __init__(self, **answers: object) -> None:
        self._answers = answers

    def invoke(self, **request: Any) -> dict[str, Any]:
        name = request["FunctionName"].removeprefix("lakegate-dev-")
        given = self._answers[f"{name}_{json.loads(request['Payload'])['do']}"]
        return {"Payload": io.BytesIO(json.dumps(given).encode())}


def told(*found: Finding) -> list[dict[str, str]]:
    return [asdict(each) for each in found]


GOOD = told(ok("A merge is one commit.", "a merge is one commit"))
OPEN = fail("anonymous requests are open", "turn on authentication", "Nessie's access")


def test_a_nessie_without_deviation_is_counted() -> None:
    """The findings of both functions are counted."""
    client = Functions(sweep_conformance=GOOD * 3, checkup_access=GOOD)
    assert require_conformance(client, "lakegate-dev") == 4


def test_the_first_deviation_is_told() -> None:
    """The message has what is wrong and how many more, and the remedy in a second line."""
    wrong = fail("Merged once. Here: expected '', found 'a'", "choose another", "a merge is once")
    client = Functions(sweep_conformance=[*GOOD, *told(wrong)], checkup_access=told(OPEN))
    with pytest.raises(LakegateError) as error:
        require_conformance(client, "lakegate-dev")
    assert error.value.code == "NESSIE_DEVIATES"
    assert error.value.message.splitlines() == [
        "a merge is once: Merged once. Here: expected '', found 'a' (1 more)",
        "choose another",
    ]


def test_a_nessie_that_is_open_is_told() -> None:
    """A Nessie that answers without a token stops the deployment, though it behaves well."""
    client = Functions(sweep_conformance=GOOD, checkup_access=told(OPEN))
    with pytest.raises(LakegateError, match="Nessie's access: anonymous requests are open"):
        require_conformance(client, "lakegate-dev")


def test_a_function_of_an_older_release_is_told() -> None:
    """An older sweep sweeps instead, and answers with numbers."""
    client = Functions(sweep_conformance={"failed": 0}, checkup_access=GOOD)
    with pytest.raises(LakegateError, match="lakegate-dev-sweep is of an older release"):
        require_conformance(client, "lakegate-dev")


def test_an_answer_is_waited_for_as_long_as_the_function_may_run() -> None:
    """SweepTimeout may be all that Lambda gives; a call that was given up would run on."""
    waits: float = vars(checkup.PATIENT)["read_timeout"]
    assert waits > _LONGEST
    read = template.read(Path(__file__).parents[4] / "template.yaml")
    assert read["Parameters"]["SweepTimeout"]["Default"] <= _LONGEST
