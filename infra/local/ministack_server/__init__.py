"""The local AWS's process: `python -P` runs this folder, which imports nothing else of ours."""
