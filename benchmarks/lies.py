"""Read Parquet files with one lie in a process of its own each, as Arrow may end the process.

`python -m benchmarks.lies [--only PART]`: each number in a footer, and in each first page's header,
is changed in five ways; the file is checked and decoded as the job does before Spark is asked.
Prints each lie that ends the process or takes more than 20 seconds, and how many there were.
"""

import argparse
import os
import signal
import traceback

from lakegate.errors import LakegateError
from lakegate.limits import DEFAULTS
from spark_jobs.files.arrow.consistency import check_parquet, parquet_footer
from spark_jobs.files.arrow.parquet import ArrowFile, MustRewrite
from tests.fakes.in_memory import InMemory
from tests.fakes.lies import lies
from tests.fakes.mutations import samples

_LONGEST = 20  # seconds


def main() -> None:
    """Tell all lies."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lies")
    parser.add_argument("--only", default="", help="a part of the samples' names")
    only = parser.parse_args().only
    told = [
        (f"{name}, {how}", body)
        for name, each in samples({}).items()
        if each.format == "parquet" and only in name
        for how, body in lies(each.body)
    ]
    ended = [name for name, body in told if _ends_the_process(name, body)]
    print(f"{len(told):,} lies, of which {len(ended)} ended or held the process")


def _ends_the_process(name: str, body: bytes) -> bool:
    child = os.fork()
    if not child:
        signal.alarm(_LONGEST)
        os._exit(_status(body))
    _, status = os.waitpid(child, 0)
    if status:
        print(f"{name}: status {status}", flush=True)
    return status != 0


def _status(body: bytes) -> int:
    """Return 0 if the file is read or refused, 1 for an error that nobody foresaw."""
    try:
        _read(body)
    except (LakegateError, MustRewrite):
        return 0
    except Exception:  # noqa: BLE001 - what nobody foresaw is what is looked for
        traceback.print_exc()
        return 1
    return 0


def _read(body: bytes) -> None:
    landed = InMemory(body)
    footer = parquet_footer(landed)
    check_parquet(footer, landed.size, DEFAULTS)
    file = ArrowFile(landed, footer)
    for number in range(file.metadata.num_row_groups):
        file.row_group(number, file.schema.names)


if __name__ == "__main__":
    main()
