"""What Lakegate needs around its code: versions, set-up, packages, and the local stack."""
