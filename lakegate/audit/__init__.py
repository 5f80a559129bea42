"""The audit report: what it holds, and how people read it."""
