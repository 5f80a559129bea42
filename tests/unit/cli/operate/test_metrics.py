"""`lakegate metrics` writes Prometheus's text format."""

from access.ingestions.measures import Measure
from cli.operate.metrics import text


def test_measures_are_gauges_with_labels() -> None:
    """A measure is its help, its type and a line for each value, with the stage as a label."""
    files = Measure(
        "files", "Files.", {(("table", "b.c"), ("state", "x")): 2, (("table", "a"),): 1}
    )
    assert text([files, Measure("none", "None.", {})], "dev").splitlines() == [
        "# HELP lakegate_files Files.",
        "# TYPE lakegate_files gauge",
        'lakegate_files{stage="dev",table="a"} 1',
        'lakegate_files{stage="dev",table="b.c",state="x"} 2',
        "# HELP lakegate_none None.",
        "# TYPE lakegate_none gauge",
    ]


def test_a_label_holds_any_text() -> None:
    """Quotes, backslashes and line ends within a label do not end it."""
    odd = Measure("x", "X.", {(("table", 'a"b\\c\nd'),): 1772971200.125})
    (line,) = text([odd], "").splitlines()[2:]
    assert line == r'lakegate_x{stage="",table="a\"b\\c\nd"} 1772971200.125'
