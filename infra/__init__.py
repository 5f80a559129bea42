"""Versions, set-up, packages, deployment and the local stack."""
