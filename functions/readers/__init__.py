"""Those who read what is published: told of each end, and warehouses brought along."""
