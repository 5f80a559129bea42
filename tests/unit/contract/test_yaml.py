"""The YAML of contracts: scalars of YAML 1.2, line numbers, and no exotic features."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakegate.contract.model import ContractInvalid, Problem
from lakegate.contract.text.problems import suggestion
from lakegate.contract.text.yaml import load

SCALARS = [
    ("NO", "NO"),
    ("yes", "yes"),
    ("on", "on"),
    ("2013-01-01", "2013-01-01"),
    ("12:30:45", "12:30:45"),
    ("1_000", "1_000"),
    ("0b11", "0b11"),
    ("=", "="),
    ("010", 10),
    ("0o10", 8),
    ("0x1F", 31),
    ("-7", -7),
    ("1e3", 1000.0),
    (".5", 0.5),
    ("true", True),
    ("False", False),
    ("~", None),
    ("", None),
    ("Null", None),
    ("'5'", "5"),
    ("!!str 010", "010"),
]
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n"
    for below, name in zip("abcdef", "bcdefg", strict=True)
)
REFUSED = [
    ("", 1, "empty"),
    ("# nothing\n", 1, "empty"),
    ("a: 1\nb: [", 2, "expected node content"),
    ("a: 1\n b: 2", 2, "a second `: `"),
    ("a: 1\n---\nb: 2", 2, "another document"),
    ("a: 1\nb: \x01", 2, "U+0001"),
    ('a: "\\ud800"', 1, "surrogate"),
    ('a: "\\UFFFFFFFF"', 1, "invalid YAML"),
    ("a: 1\nb: !!python/name:os.system x", 2, "tag"),
    ("a: !!timestamp 2013-01-01", 1, "tag"),
    ("a: !!int x", 1, "x is not a int"),
    ("a: " + "9" * 5000, 1, "a number of 5,000 characters"),
    ("a: 0x" + "f" * 500, 1, "a number of 502 characters"),
    ("a: 1\n? [b]\n: 2", 2, "a key must be a word"),
    ("a: &a [*a]", 1, "unfold to too much"),
    ("a: *b", 1, "nothing above has the anchor b"),
    ("a: &b 1\nc: &b 2", 2, "the anchor b is given twice"),
    (
        "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*a" + "]" * 30,
        2,
        "unfold to too much",
    ),
    ("a: &a [&b [], " + "[" * 30 + "]" * 30 + "]\nb: " + "[" * 30 + "*a" + "]" * 30, 2, "unfold"),
    (BOMB, 5, "unfold to too much"),
    ("[" * 60 + "]" * 60, 1, "nested deeper"),
    ("[" * 100_000, 1, "nested deeper"),
    ("#" * (1024 * 1024 + 1), 1, "longer than 1,048,576"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_scalar_is_what_yaml_1_2_says(text: str, value: object) -> None:
    """Country codes and dates stay text, and a leading zero does not make a number octal."""
    found = load(f"a: {text}", "x.yaml", []).plain()
    assert found == {"a": value}
    assert isinstance(found, dict)
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(("text", "line", "reason"), REFUSED)
def test_broken_or_exotic_yaml_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    """A broken, exotic or hostile text gives one problem with its line."""
    with pytest.raises(ContractInvalid) as refusal:
        load(text, "x.yaml", [])
    (problem,) = refusal.value.problems
    assert problem.line == line
    assert reason in problem.reason


def test_a_key_that_is_given_twice_is_a_problem_and_the_first_stays() -> None:
    """A duplicate key is a problem with the line of the first value, which stays."""
    problems: list[Problem] = []
    node = load("a:\n- {b: 1,\n   b: 2}", "x.yaml", problems)
    assert node.plain() == {"a": [{"b": 1}]}
    assert problems == [Problem(3, "a[0].b", "is given twice, first in line 2")]


def test_aliases_stand_for_what_they_name() -> None:
    """An alias stands for the value of its anchor."""
    assert load("a: &x {b: 1}\nc: *x", "x.yaml", []).plain() == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("mustBeLesThan", "did you mean mustBeLessThan"), ("METRIC", "metric"), ("zebra", "")],
)
def test_a_slip_of_the_pen_is_answered_with_a_suggestion(word: str, expected: str) -> None:
    """The nearest known word is suggested, if there is a near one."""
    found = suggestion(word, ["metric", "mustBe", "mustBeLessThan"])
    assert expected in found
    assert bool(found) == bool(expected)


@settings(deadline=None)
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_has_a_tree_or_is_refused(text: str) -> None:
    """Any text gives a tree or a refusal."""
    with contextlib.suppress(ContractInvalid):
        load(text, "x.yaml", []).plain()
