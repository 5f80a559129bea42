"""AWS's clients, for the region that the run was submitted with."""

import os
from typing import Any

import boto3


def client(service: str) -> Any:
    """Return boto3's client of a service; its credentials are the run's.

    The submission sets the variable for driver and executors. A runtime without it is not one of
    ours, and fails here.
    """
    return boto3.client(service, region_name=os.environ["AWS_REGION"])
