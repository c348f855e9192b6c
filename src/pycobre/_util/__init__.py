"""Private helpers that know nothing of processes, LPs or plants.

arrays     the array types that signatures name
codec      frozen classes as JSON values and back
container  the one binary file format: a JSON header and raw arrays, with a checksum
error_record  errors that cross from one process to another, as checked records
files      files that appear whole or not at all
frozen     immutable classes that are quick to load
lazy       names of a package that are loaded when they are first used
pidfd      waiting for a process to end
suggest    the known name that was probably meant
"""
