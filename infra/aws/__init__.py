"""Lakegate on AWS."""
