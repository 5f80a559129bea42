"""Tables on main: list, query, trace and change them, and keep them small."""
