"""The audit of a run: five tiers that measure checks, and the verdict."""
