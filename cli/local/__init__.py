"""The local stack: start and stop it, the demo, and its Slack."""
