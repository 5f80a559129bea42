"""`lakegate contract`: draft, check, test, push and withdraw contracts."""
