"""The page that compares a branch with main."""
