"""How people are told what happened, and how they say what is to be done."""
