"""The sensor for Dagster, which is looked up above this package (docs/integrations.md)."""

from importlib import import_module

published_sensor = import_module("access.sensors.dagster").published_sensor
