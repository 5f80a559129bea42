"""Patterns that contracts refuse are slow in Java, and accepted ones are not."""

from collections.abc import Callable

import pytest

from lakegate.ecma_patterns import java_pattern
from lakegate.pattern_lint import slow_text
from tests.spark.conftest import Job
from tests.unit.contract.pattern_examples import QUICK, SLOW_IN_JAVA

pytestmark = pytest.mark.spark

# A text that counts how often a search reads one of its characters.
COUNTED = """
public class Counted implements CharSequence {
  private final String text;
  private long reads = 0;
  private Counted(String text) { this.text = text; }
  public int length() { return text.length(); }
  public CharSequence subSequence(int from, int to) { return text.substring(from, to); }
  public char charAt(int index) {
    if (++reads > 1000000) throw new IllegalStateException("that is enough");
    return text.charAt(index);
  }
  public static long search(String pattern, String text) {
    Counted counted = new Counted(text);
    try { java.util.regex.Pattern.compile(pattern).matcher(counted).find(); }
    catch (IllegalStateException enough) { }
    return counted.reads;
  }
}
"""
Reads = Callable[[str, str], int]


@pytest.fixture(scope="module")
def reads(job: Job) -> Reads:
    """Return a function that counts the characters that Java reads to search a text.

    It takes a pattern and a text, and counts up to a million.
    """
    gateway = job.warm_spark.sparkContext._gateway
    assert gateway is not None
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(COUNTED)
    methods = compiler.getClassLoader().loadClass("Counted").getMethods()
    (search,) = (method for method in methods if method.getName() == "search")

    def count(pattern: str, text: str) -> int:
        arguments = gateway.new_array(gateway.jvm.Object, 2)
        arguments[0], arguments[1] = java_pattern(pattern), text
        return int(search.invoke(None, arguments))

    return count


@pytest.mark.parametrize(("pattern", "before", "part", "after"), SLOW_IN_JAVA)
def test_a_refused_pattern_is_slow_in_java(
    reads: Reads, pattern: str, before: str, part: str, after: str
) -> None:
    """A refused pattern costs at least the square of the text's length."""
    short, long = (reads(pattern, before + part * times + after) for times in (60, 120))
    assert long > 3.5 * short or long > 1_000_000
    assert slow_text(pattern) is not None


def test_some_refused_patterns_would_never_end(reads: Reads) -> None:
    """For some refused patterns a hundred characters keep Java busy forever."""
    endless = [
        p
        for p, before, part, after in SLOW_IN_JAVA
        if reads(p, before + part * 99 + after) > 1_000_000
    ]
    assert len(endless) >= 2


@pytest.mark.parametrize("pattern", QUICK)
def test_an_accepted_pattern_is_quick_in_java(reads: Reads, pattern: str) -> None:
    """A common pattern reads any long text only a few times."""
    texts = [part * (100 // len(part)) + "\x01" for part in ("a", "1", " ", ".", "a1", "A.", "1-")]
    assert max(reads(pattern, text) for text in texts) < 1_500
