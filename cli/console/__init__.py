"""What all commands print with: consoles, tables, options, JSON."""
