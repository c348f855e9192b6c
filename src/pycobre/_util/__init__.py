"""Private helpers that know nothing of processes, LPs or plants.

frozen     immutable classes, quick to load      lazy   names that are loaded when they are used
container  arrays and values in one checked file pidfd  waiting for a process to end
"""
