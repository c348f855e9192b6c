"""MPI, through mpi4py.

backend  the communicator                       region   shared windows
library  which MPI library to load              runtime  initialising it
job      ending the whole job                   watch    noticing that a rank is gone
failure_monitor  a process beside the ranks that says which of them died first
errors   MPI's codes as our exceptions          fold     reductions in rank order
"""
