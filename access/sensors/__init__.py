"""Sensors of orchestrators, and what landed or was published that they wait for."""
