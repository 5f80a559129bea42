"""Cells of text files are recognised by the ways in which they are often written."""

import pytest

from lakegate.contract.written import FORMATS, formats_of, needs_decimal_comma
from tests.unit.contract.contract_texts import parsed


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("31.01.2026", ("dd.MM.yyyy",)),
        ("3/14/2026", ("M/d/yyyy",)),
        ("03/04/2026", ("dd/MM/yyyy", "MM/dd/yyyy")),
        ("3/4/2026", ("d/M/yyyy", "M/d/yyyy")),
        ("02JAN2007", ("ddMMMyyyy",)),
        ("31.02.2026", ()),
        ("2026-01-31", ()),
        ("31.01.2026 10:15", ()),
        ("31.01.2026 x", ()),
        ("01.01.0000", ()),
    ],
)
def test_a_day_has_the_formats_that_read_it(text: str, formats: tuple[str, ...]) -> None:
    """Each format that reads a text is named, those without zeros only if no other does."""
    assert formats_of(text, with_time=False) == formats


def test_a_moment_has_a_format_with_its_time() -> None:
    """A time of day makes the format one of moments, and a moment may be a day alone."""
    assert formats_of("31.01.2026 10:15", with_time=True) == ("dd.MM.yyyy HH:mm",)
    assert formats_of("31.01.2026", with_time=True) == ("dd.MM.yyyy",)


@pytest.mark.parametrize("pattern", FORMATS)
def test_a_contract_may_declare_each_format(pattern: str) -> None:
    """What is proposed is accepted."""
    column = f'{{name: c, logicalType: timestamp, logicalTypeOptions: {{format: "{pattern}"}}}}'
    settings = "- {property: format, value: csv}"
    assert parsed(f"- {column}", settings=settings).column("c").written == pattern


@pytest.mark.parametrize(
    ("text", "needs"), [("1,5", True), ("-12,3456", True), ("1,234", False), ("1.5", False)]
)
def test_a_comma_may_be_a_decimal_one(text: str, needs: bool) -> None:
    """Three digits behind a comma may be a thousand's."""
    assert needs_decimal_comma(text) is needs
