"""Record final states, and do what is due then."""
