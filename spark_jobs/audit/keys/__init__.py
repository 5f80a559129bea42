"""Answer checks of keys."""
