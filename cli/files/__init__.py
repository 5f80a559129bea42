"""Files for the gate: drop, bring and generate them."""
