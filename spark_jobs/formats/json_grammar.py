"""Where the items of a JSON array begin and end, as Java's regular expressions. Pure.

Only strings and brackets are looked at: whether an item is JSON is judged when it is parsed. Every
loop is possessive, so that nothing is tried twice and no stack grows with a text's length.
"""

DEEPEST = 100
BLANKS = " \t\r\n"
_BLANKS = "[ \\t\\r\\n]*+"
_MARK = r"\xEF\xBB\xBF"
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_OTHER = r'[^"\[\]{}]++'


def array() -> str:
    """Return the expression for a text of one character a byte that is one array and no more."""
    items = f"{_item()}(?:,{_item()})*+"
    return rf"(?s)\A(?:{_MARK})?{_BLANKS}\[(?:{_BLANKS}|{items})\]{_BLANKS}\z"


def item() -> str:
    """Return the expression for the next item of an array, with the blanks around it."""
    return f"(?s){_item()}"


def _item() -> str:
    return rf'(?:[^",\[\]{{}}]++|{_STRING}|[\[{{]{_within()}[\]}}])++'


def _within() -> str:
    """Return the expression for what is between two brackets, of whatever kind they are."""
    within = f"(?:{_OTHER}|{_STRING})*+"
    for _ in range(DEEPEST):
        within = rf"(?:{_OTHER}|{_STRING}|[\[{{]{within}[\]}}])*+"
    return within
