"""MPI, through mpi4py.

backend  the communicator                       region   shared windows
library  which MPI library to load              runtime  initialising it
job      ending the whole job                   watch    noticing that a rank is gone
failure_monitor  a process beside the ranks that reports the first of them to die
errors   MPI's codes as our exceptions          fold     reductions in rank order
"""
