"""The quality page: for owners of tables and for everyone who just received an alert."""
