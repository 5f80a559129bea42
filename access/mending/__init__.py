"""Broken rows of a rejected file: written out to be corrected, and taken back."""
