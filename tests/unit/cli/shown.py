"""What is printed, as tests compare it."""

import io
import re

from rich.console import Console, RenderableType


def shown(renderable: RenderableType) -> str:
    """Return the output for a pipe, with single blanks and spinners as ~."""
    console = Console(file=io.StringIO(), width=200, markup=False)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return re.sub("[\u2800-\u28ff]", "~", " ".join(file.getvalue().split()))
