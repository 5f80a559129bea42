"""The quality page: what someone who was just alerted, or who owns a table, wants to know."""
