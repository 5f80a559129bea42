"""The audit: tiers of checks, and the verdict."""
