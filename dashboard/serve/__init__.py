"""Who may see the page, and how it is served."""
