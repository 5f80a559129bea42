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


def test_a_table_with_more_columns_than_fit_is_written_by_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where columns would be left out, each row is a list of its names and cells."""
    many = 120
    made = terminal.table(*(f"column {n}" for n in range(many)))
    for row in ("a", "b"):
        made.add_row(*(f"[{row}{n}]" for n in range(many)))
    terminal.out().print(made)

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    expected = [[f"column {n} [{row}{n}]" for n in range(many)] for row in ("a", "b")]
    assert lines == [*expected[0], "", *expected[1], ""]


def test_many_narrow_columns_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A table that fits stays one, however many columns it has."""
    made = terminal.table(*"abcdefghijklmnopqrstuvwxyzabcdefghijklmn")
    made.add_row(*"1234567890123456789012345678901234567890")
    terminal.out().print(made)

    said = capsys.readouterr().out.split("\n")
    assert "a b c d" in " ".join(said[1].split())
