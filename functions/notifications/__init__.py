"""Alerts, and the decisions of owners in Slack and by e-mail."""
