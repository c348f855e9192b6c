"""comm/mpi."""
