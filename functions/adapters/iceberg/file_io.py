"""Give pyiceberg file access through boto3; its own implementations need 170 MB of pyarrow.

It implements pyiceberg's `FileIO` and holds whole files in memory, as metadata and manifests are
small.
"""

import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.typedef import Properties

# All tables share one client: creating one takes longer than reading a table.
CLIENT = "lakegate.s3-client"


class S3InputFile(InputFile):
    """One object, read as a whole."""

    def __init__(self, location: str, client: Any) -> None:
        """Use boto3's `s3` client."""
        super().__init__(location)
        self._client = client

    def __len__(self) -> int:
        """Return the object's size in bytes."""
        return int(self._client.head_object(**_address(self.location))["ContentLength"])

    def exists(self) -> bool:
        """Return whether the object is there."""
        try:
            self._client.head_object(**_address(self.location))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                return False
            raise
        return True

    def open(self, seekable: bool = True) -> InputStream:
        """Return the object's bytes. Raises FileNotFoundError."""
        try:
            body = self._client.get_object(**_address(self.location))["Body"]
        except self._client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(self.location) from error
        return io.BytesIO(body.read())


class S3OutputFile(OutputFile):
    """One object, written when its stream is closed."""

    def __init__(self, location: str, client: Any) -> None:
        """Use boto3's `s3` client."""
        super().__init__(location)
        self._client = client
        self._written = 0

    def __len__(self) -> int:
        """Return how many bytes this process wrote: pyiceberg asks for it after each manifest."""
        return self._written

    def exists(self) -> bool:
        """Return whether the object is there."""
        return self.to_input_file().exists()

    def to_input_file(self) -> S3InputFile:
        """Return the same object for reading."""
        return S3InputFile(self.location, self._client)

    def create(self, overwrite: bool = False) -> OutputStream:
        """Return a stream whose bytes become the object; without `overwrite` it must be new."""
        return _Buffer(partial(self._write, {} if overwrite else {"IfNoneMatch": "*"}))

    def _write(self, condition: Mapping[str, str], body: bytes) -> None:
        self._client.put_object(**_address(self.location), Body=body, **condition)
        self._written = len(body)


class S3FileIO(FileIO):
    """Objects on S3 by their `s3://` addresses."""

    def __init__(self, properties: Properties) -> None:
        """Use the catalog's `properties`; CLIENT among them is boto3's `s3` client."""
        super().__init__(properties)
        self._client = properties[CLIENT]

    def new_input(self, location: str) -> S3InputFile:
        """Return an object for reading."""
        return S3InputFile(location, self._client)

    def new_output(self, location: str) -> S3OutputFile:
        """Return an object for writing."""
        return S3OutputFile(location, self._client)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete an object."""
        address = location if isinstance(location, str) else location.location
        self._client.delete_object(**_address(address))


class _Buffer(io.BytesIO):
    def __init__(self, write: Callable[[bytes], object]) -> None:
        super().__init__()
        self._write = write

    def close(self) -> None:
        if not self.closed:
            self._write(self.getvalue())
        super().close()


def _address(location: str) -> dict[str, str]:
    parts = urlsplit(location)
    return {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
