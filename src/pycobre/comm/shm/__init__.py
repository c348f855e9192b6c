"""Shared memory of one machine.

backend  the communicator and its regions    segment  creating and joining the POSIX segment
failure  what went wrong, in words
"""
