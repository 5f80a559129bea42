"""The Lambda functions: from landed objects to published rows, alerts and announcements."""
