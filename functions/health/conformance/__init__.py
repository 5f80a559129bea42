"""The behaviours of Nessie that Lakegate relies on, and their trial on a running server."""
