import pytest

from cli.console import terminal


def test_a_key_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets in a key are printed unchanged on both consoles."""
    terminal.out().print("[red] März.csv")
    terminal.err().print("[red] März.csv")

    said = capsys.readouterr()
    assert (said.out, said.err) == ("[red] März.csv\n", "[red] März.csv\n")


def test_null_is_not_a_text() -> None:
    """A null looks different from the text "null"."""
    assert terminal.cell(None).style != terminal.cell("null").style
