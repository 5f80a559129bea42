"""Record what a job run found, and decide what that means."""
