"""Alerts and decisions of people, in Slack and by e-mail."""
