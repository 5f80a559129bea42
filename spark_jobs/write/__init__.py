"""Write the data files of a table from decoded rows, and commit them on the run's branch."""
