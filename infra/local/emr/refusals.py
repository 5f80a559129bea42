"""The errors with which EMR Serverless answers, and the service model that says what is wrong."""

from functools import cache

import botocore.session
from botocore.model import ServiceModel

# The errors of every service, which are not in the model (API Reference, "Common Errors").
_COMMON = {
    "AccessDeniedException": 403,
    "MissingAuthenticationTokenException": 403,
    "ThrottlingException": 400,
}


class AwsError(Exception):
    """An error as answer: `code` is the name of the client's exception."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        """Return the HTTP status of this error."""
        if self.code in _COMMON:
            return _COMMON[self.code]
        return model().shape_for(self.code).metadata["error"]["httpStatusCode"]


def invalid(message: str) -> AwsError:
    """Return the error for an invalid request."""
    return AwsError("ValidationException", message)


@cache
def model() -> ServiceModel:
    """Return botocore's service model of EMR Serverless."""
    return botocore.session.get_session().get_service_model("emr-serverless")
