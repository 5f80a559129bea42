"""Contracts: tables, columns and checks."""
