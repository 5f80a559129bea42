"""The audit of a run: six tiers that measure checks, and the verdict."""
