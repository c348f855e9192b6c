"""Starting ranks on this machine and hearing from them.

launcher       start N ranks, forward signals, reap them, say which one died
channel        the pipe between a rank and the process that started it
event_batches  events of a rank, several in one message
"""
