"""Java's exceptions, translated: is the file at fault, or something that may pass?"""

from py4j.protocol import Py4JJavaError

from lakegate.errors import LakegateError, Permanent, Transient

_PASSING = (
    "SdkClientException",
    "AWSClientIOException",
    "AWSServiceIOException",
    "AWSStatus5",
    "ConnectException",
    "RemoteFileChangedException",
    "NoHttpResponseException",
    "SocketTimeoutException",
    "UnknownHostException",
    "ServiceFailureException",
    "ServiceUnavailableException",
    "RESTException",
)
_FILE_AT_FAULT = {
    "PARQUET_TYPE_ILLEGAL": "UNREADABLE_TYPE",
    "Illegal Parquet type": "UNREADABLE_TYPE",
    "is not a Parquet file": "CORRUPT_FILE",
    "CANNOT_READ_FILE_FOOTER": "CORRUPT_FILE",
    "FAILED_READ_FILE": "CORRUPT_FILE",
    "ParquetDecodingException": "CORRUPT_FILE",
    "ParquetRuntimeException": "CORRUPT_FILE",
    "could not verify page integrity": "CORRUPT_FILE",
    "EOFException": "CORRUPT_FILE",
    "ZipException": "CORRUPT_FILE",
    "can not read class org.apache.parquet": "CORRUPT_FILE",
    "NegativeArraySizeException": "CORRUPT_FILE",
    "Invalid footer": "CORRUPT_FILE",
}


def explain(error: Py4JJavaError, what: str) -> LakegateError:
    """The error to raise for a Java exception met while doing `what`.

    Permanent where the causes show that the file itself is at fault, Transient otherwise: an
    unknown fault may pass, and EMR's next try of the run finds out.
    """
    causes = _causes(error)
    story = " <- ".join(causes)
    if not any(name in story for name in _PASSING):
        for sign, code in _FILE_AT_FAULT.items():
            if sign in story:
                return Permanent(code, f"{what}: {causes[-1][:500]}")
    return Transient("JOB_FAULT", f"{what}: {story[:2000]}")


def _causes(error: Py4JJavaError) -> list[str]:
    causes: list[str] = []
    cause = error.java_exception
    while cause is not None and len(causes) < 10:
        causes.append(str(cause.toString()))
        cause = cause.getCause()
    return causes
