"""What the functions and the job tell each other: what landed, what to do, what was done."""
