"""Colours: those of the page, light and dark, and those that an outcome has everywhere.

The five of the outcomes are told apart by people who are colour-blind and stand out from both
backgrounds by 3 to 1 at least (Okabe and Ito, "Color Universal Design"; WCAG 2.2, 1.4.11).
"""

from collections.abc import Mapping

GREEN, ORANGE, PINK, BLUE, GREY = "#0c9b78", "#d55e00", "#c0609c", "#3987c9", "#868c95"

_SHARED = {
    "primaryColor": BLUE,
    "greenColor": GREEN,
    "orangeColor": ORANGE,
    "blueColor": BLUE,
    "grayColor": GREY,
    "baseRadius": "0.5rem",
}
_LIGHT = {
    "backgroundColor": "#ffffff",
    "secondaryBackgroundColor": "#f5f6f8",
    "textColor": "#1c2430",
    "linkColor": "#1f639f",
    "codeTextColor": "#1c2430",
    "codeBackgroundColor": "#f0f2f5",
    "borderColor": "#dde1e7",
}
_DARK = {
    "backgroundColor": "#12161c",
    "secondaryBackgroundColor": "#1b212a",
    "textColor": "#e7eaee",
    "linkColor": "#7db8ea",
    "codeTextColor": "#e7eaee",
    "codeBackgroundColor": "#232a35",
    "borderColor": "#313a47",
}


def theme() -> Mapping[str, str]:
    """Streamlit's options of both themes; the reader's system says which one is shown."""
    kinds = {"light": _LIGHT, "dark": _DARK}
    return {
        f"theme.{kind}.{name}": value
        for kind, colours in kinds.items()
        for name, value in {**_SHARED, **colours}.items()
    } | {"theme.metricValueFontSize": "1.6rem", "theme.paddingTop": "1rem"}
