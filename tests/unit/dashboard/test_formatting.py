"""Numbers, times and names as the quality page shows them."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

from dashboard.formatting import ago, code, harmless, size, tables
from lakegate.text import count
from lakegate.times import moment

_NOW = "2026-03-01T12:00:00.000+00:00"
HOSTILE = (
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<script>alert(1)</script>",
    "https://evil.example",
    "a@evil.example",
    ":red[alarm] :smile: :material/delete:",
    "$E=mc^2$",
    "` :red[out] `",
    "``` `` `",
    "`",
    "`a",
    " a ",
    "# title\n\n* list",
    "\u202egnp.exe\x1b[31m",
    "",
)


@given(st.text(max_size=40))
def test_any_text_is_nothing_but_code(text: str) -> None:
    """Markdown shows any text as one piece of code that lacks only invisible characters."""
    for name in (*HOSTILE, text):
        blocks = MarkdownIt("commonmark").parse(f"before {code(name)} after")
        assert [token.type for token in blocks] == ["paragraph_open", "inline", "paragraph_close"]
        parts = blocks[1].children or []
        assert [part.type for part in parts] == ["text", "code_inline", "text"]
        shown = [character for character in name if character.isalnum()]
        assert [c for c in parts[1].content if c.isalnum()] == shown


def test_times_have_a_zone() -> None:
    """A time has its zone, a missing time is empty, and a past time also has its age."""
    assert moment(_NOW) == "1 Mar 2026, 12:00:00 UTC"
    assert moment("") == ""
    assert ago("2026-03-01T11:56:30.000+00:00", _NOW) == "3 min ago"
    assert ago("2026-03-01T12:00:05.000+00:00", _NOW) == "just now"
    assert ago("", _NOW) == "at an unknown time"


def test_rows_of_others_are_harmless() -> None:
    """Names and values of rows contain no direction marks and no escapes."""
    (row,) = harmless([{"a\u202eb": "\x1b[2Jc", "n": 7, "null": None}])
    assert row == {"a�b": "␛[2Jc", "n": 7, "null": None}
    assert tables(["a.b", "c\nd"]) == "a.b, c␊d"
    assert tables([]) == "no table"


def test_a_null_beside_values_is_shown_and_changes_none() -> None:
    """A null among texts or integers is `(empty)`, and the integers keep all their digits."""

    def script() -> None:
        from dashboard.formatting import grid  # AppTest runs this function's source alone

        grid([{"id": 2**53 + 1, "name": None}, {"id": None, "name": "Ann"}], "rows")

    shown = AppTest.from_function(script, default_timeout=600).run().dataframe[0].value
    cells = {name: [*map(str, column)] for name, column in shown.to_dict("list").items()}
    assert cells == {"id": ["9007199254740993", "(empty)"], "name": ["(empty)", "Ann"]}


def test_numbers_have_separators() -> None:
    """Large numbers have separators, and nouns are singular after one."""
    assert [count(n, "file") for n in (0, 1, 2300)] == ["0 files", "1 file", "2,300 files"]
    assert count(2, "entry", "entries") == "2 entries"
    assert [size(n) for n in (999, 1000, 88_200_000)] == ["999 bytes", "1.0 KB", "88.2 MB"]
