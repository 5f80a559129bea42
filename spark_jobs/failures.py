"""Java's exceptions, translated: is the file at fault, or something that may pass?"""

from lakegate.errors import LakegateError, Permanent, Transient
from spark_jobs.jvm import causes

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


def explain(error: BaseException, what: str) -> LakegateError:
    """The error to raise for one of `jvm.JavaError`, met while doing `what`.

    Permanent where the causes show that the file itself is at fault, Transient otherwise: an
    unknown fault may pass, and EMR's next try of the run finds out.
    """
    chain = causes(error)
    story = " <- ".join(chain)
    codes = [code for sign, code in _FILE_AT_FAULT.items() if sign in story]
    if codes and not may_pass(error):
        return Permanent(codes[0], f"{what}: {chain[-1][:500]}")
    return Transient("JOB_FAULT", f"{what}: {story[:2000]}")


def may_pass(error: BaseException) -> bool:
    """Whether one of `jvm.JavaError` comes from the network or a service, not from data."""
    story = " <- ".join(causes(error))
    return any(name in story for name in _PASSING)
