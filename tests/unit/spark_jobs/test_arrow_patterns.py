"""RE2 finds what ECMA-262 says, and takes over from Java only where both surely agree."""

import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakegate.ecma_patterns import PATTERNS
from spark_jobs.audit.arrow.patterns import means_the_same, re2_pattern
from tests.unit.contract.pattern_examples import COMMON, MEANINGS


@pytest.mark.parametrize(("pattern", "found", "lost"), MEANINGS)
def test_a_pattern_finds_what_the_standard_says(
    pattern: str, found: list[str], lost: list[str]
) -> None:
    """Sets, ends, groups and repetitions mean in RE2 what they mean in ECMA-262."""
    if written := re2_pattern(pattern):
        texts = pa.array([*found, *lost])
        assert texts.filter(pc.match_substring_regex(texts, written)).to_pylist() == found
    else:
        assert "(?=" in pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "a(?!b)",
        r"\p{L}",
        r"[\P{Lu}]",
        "(a?)*",
        "(^|a){2}b",
        r"(\b|a){2}b",
        "(a|){2}",
        "a{1001}",
        "((a{100}){100}){100}",
    ],
)
def test_what_engines_may_see_differently_is_left_to_java(pattern: str) -> None:
    """Look-around, categories, repeated nothing and very many repetitions are Java's."""
    assert not means_the_same(pattern)


def test_common_patterns_need_no_spark() -> None:
    """All formats, and all but a few of the patterns that people write, have one meaning."""
    assert all(map(means_the_same, PATTERNS.values()))
    assert sum(map(means_the_same, COMMON)) > 0.8 * len(COMMON)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(.*)(.*)(.*)(.*)=$", r"^(\w{1,50} ?){1,20}!$"])
def test_the_time_of_a_search_grows_with_the_text_alone(pattern: str) -> None:
    """A pattern for which another engine would try ways without end is searched for at once."""
    began = time.process_time()
    texts = pa.array(["a" * 1_000_000 + "?"])
    assert pc.match_substring_regex(texts, re2_pattern(pattern)).to_pylist() == [False]
    assert time.process_time() - began < 10
