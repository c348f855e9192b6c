"""Starting ranks on this machine and hearing from them.

launcher       start N ranks, forward signals, reap them, report which one died
channel        the pipe between a rank and the process that started it
event_batcher  batches the events of a rank before they are sent
"""
