"""The job: one landed object, read, appended on its branch, audited in the same pass, reported."""
