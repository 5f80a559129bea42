"""A Slack that runs here, as strict as the real one."""
