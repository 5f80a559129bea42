"""One module a format: how files of it become rows with the contract's columns."""
