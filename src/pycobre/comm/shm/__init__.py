"""comm/shm."""
