"""The view of branch."""

import streamlit as st

from dashboard.opening import Opened


def show(opened: Opened) -> None:
    """Show it."""
    st.title("Branch")
