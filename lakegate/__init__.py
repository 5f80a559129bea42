"""Values and decisions that the Lambdas, the job and the command line share.

Nothing in this package touches a network, a disk, a clock or the environment.
"""
