"""Shared memory of one machine.

backend  the communicator and its regions    segment  creating and joining the POSIX segment
failure  what the native code reports of a failure, as an exception
names    names of segments, to be removed by a process that ends at once
"""
