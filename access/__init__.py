"""Read-only access to a deployment: tables, rows and reports."""
