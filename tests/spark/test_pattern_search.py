"""Java, in Spark, finds a pattern where ECMA-262 says, and RE2 finds it there as well."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakegate.ecma_patterns import PatternUnsupported, java_pattern
from spark_jobs.audit.arrow.patterns import means_the_same, re2_pattern
from tests.fakes.amounts import RUNS, SEED
from tests.spark.conftest import Job
from tests.unit.contract.pattern_examples import MEANINGS

pytestmark = pytest.mark.spark

_TEXTS = 10  # of each pattern
# Parts of patterns, and characters that they may be found in.
_ATOMS = (
    *(("a", "a"), ("b", "b"), ("A", "A"), ("k", "k"), ("1", "1"), (" ", " "), ("é", "é")),
    *((".", "aé😀\x85\x0b"), (r"\d", "01"), (r"\D", "a😀"), (r"\w", "a_1"), (r"\W", "é -\u017f😀")),
    *((r"\s", " \t\u00a0\ufeff\u2028"), (r"\S", "a\x85\u180e😀"), (r"\.", "."), (r"\\", "\\")),
    *(("[ab]", "ab"), ("[^a]", "b\n😀"), ("[a-z0-9]", "az09"), ("[A-Z_-]", "AZ_-"), ("-", "-")),
    *((r"[\w.-]", "a.-"), (r"[^\s@]", "a😀"), (r"[^\S]", " \u3000"), (r"[^\n]", "\r\u2029")),
    *((r"[\d-]", "1-"), ("[à-ÿ]", "àÿ"), (r"[^\W\d]", "a_"), (r"[&&a]", "&a"), ("[[a^]", "[^")),
    *((r"[^\x00-\x1f]", "a\x7f\ufffd"), (r"\u2028", "\u2028"), (r"[\ue000-\uffff]", "\uffff")),
    *((r"[\u4e00-\u9fff]", "中"), (r"\x00", "\x00"), (r"\v", "\x0b"), ("@", "@"), ("_", "_")),
    *(("😀", "😀"), ("[^😀]", "a😁"), (r"[\u0000-\uffff]", "a\ufffd"), (r"[^\ud83d\ude00]", "é")),
    *((r"[\ufffd-\ud83d\ude00]", "😀\uffff"), ("[^\U0001f5ff-\U0001f9ff]", "a\U0010ffff")),
    *(("^", ("",)), ("$", ("",)), (r"\b", ("",)), (r"\B", ("",)), ("", ("",))),
)  # fmt: skip
_TIMES = (
    *((("", 1),) * 6),
    *(("*", 2), ("*", 0), ("+", 1), ("+", 3), ("?", 0), ("?", 1), ("*?", 1), ("+?", 2), ("??", 1)),
    *(("{0}", 0), ("{2}", 2), ("{1,3}", 2), ("{2,}", 3), ("{0,2}?", 1), ("{1,}?", 2)),
)
_NOISE = "aAbk1 _-.é😀😁\n\r\u2028\x85\x00@"


def _regex(random: Random, depth: int) -> tuple[str, str]:
    """Return a random pattern, and a text that it is likely to be found in."""
    pattern, text = "", ""
    for _ in range(random.randint(1, 4)):
        part, found = random.choice(_ATOMS)
        example = random.choice(found)
        if depth and random.random() < 0.35:
            inner, example = _regex(random, depth - 1)
            part = f"({random.choice(('', '?:'))}{inner})"
        sign, times = random.choice(_TIMES)
        pattern, text = pattern + part + sign, text + example * times
    if depth and random.random() < 0.2:
        other, example = _regex(random, depth - 1)
        pattern, text = f"{pattern}|{other}", random.choice((text, example))
    return pattern, text


def _patterns(random: Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield random patterns that RE2 is said to share with Java, each with a text."""
    while count:
        with suppress(PatternUnsupported):
            pattern, text = _regex(random, 2)
            pattern = f"^{pattern}$" if random.random() < 0.6 else pattern
            if means_the_same(pattern):
                yield pattern, text[:8]  # as Java tries more ways with each character
                count -= 1


def _altered(random: Random, text: str) -> str:
    """Return a text in which up to three characters are replaced, left out or put in."""
    for _ in range(random.randint(0, 3)):
        at, new = random.randint(0, len(text)), random.choice(("", *_NOISE))
        text = text[:at] + new + text[at + random.randint(0, 1) :]
    return text


def _found_by_java(job: Job, pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Return for each pair if Spark finds the pattern in the text."""
    columns = {"n": range(len(pairs)), "p": [java_pattern(p) for p, _ in pairs]}
    table = pa.table({**columns, "t": [text for _, text in pairs]})
    found = job.warm_spark.createDataFrame(table).selectExpr("n", "t RLIKE p AS found")
    return [row.found for row in sorted(found.collect())]


def _found_by_re2(pattern: str, texts: Sequence[str]) -> list[bool]:
    found: list[bool] = pc.match_substring_regex(pa.array(texts), re2_pattern(pattern)).to_pylist()
    return found


def test_java_finds_what_the_standard_says(job: Job) -> None:
    """The translation to Java finds each value that ECMA-262 finds, and no other one."""
    told = [(pattern, text) for pattern, found, lost in MEANINGS for text in (*found, *lost)]
    expected = [(pattern, text) for pattern, found, _ in MEANINGS for text in found]
    found = zip(told, _found_by_java(job, told), strict=True)
    assert [pair for pair, is_found in found if is_found] == expected


def test_re2_finds_what_java_finds(job: Job) -> None:
    """RE2 finds each pattern that it is said to share with Java in the same texts as Java."""
    random = Random(SEED)  # noqa: S311 - no secret
    pairs, by_re2 = [], []
    for pattern, text in _patterns(random, RUNS):
        texts = [_altered(random, text) for _ in range(_TEXTS)]
        pairs += [(pattern, each) for each in texts]
        by_re2 += _found_by_re2(pattern, texts)
    by_java = _found_by_java(job, pairs)
    both = zip(pairs, by_re2, by_java, strict=True)
    wrong = [(*pair, java) for pair, re2, java in both if re2 is not java]
    print(f"{len(pairs)} pairs, {sum(by_java)} found, {len(wrong)} different")
    assert wrong[:5] == []
    assert 0.2 * len(pairs) < sum(by_java) < 0.8 * len(pairs)
