"""Access to a deployment for commands, page and programs: files, tables, reports, decisions."""
