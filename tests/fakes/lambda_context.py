"""The context that Lambda passes to a function."""

from dataclasses import dataclass


@dataclass
class Context:
    """Lambda's description of an invocation."""

    function_name: str = "lakegate-test"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:000000000000:function:lakegate-test"
    aws_request_id: str = "request"
