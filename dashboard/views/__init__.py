"""The views, one module each. In a folder `pages` Streamlit would run each as a script."""
