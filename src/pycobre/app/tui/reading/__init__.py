"""What is known of runs from their files alone; nothing here knows a terminal.

numbers      what a file says, taken only where it is a number
points       one iteration as a point of a plot; many of them within bounded memory
event_file   events.jsonl: its end, a sample of the rest, and what is appended
messages     what happened, as sentences
watched      one run, read again and again
listing      the runs below a directory, one line each
settings     settings and system of a run; settings that differ
operation    quantities of a finished run as quantile bands
"""
