"""Read, audit and write a landed file in one pass, by Arrow: `prepare` is the entry."""
