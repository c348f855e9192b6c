"""What fills the terminal.

base      a screen that is read again and again
runs      the runs below a directory: sort, filter, mark, open
columns   the table of runs: columns, cells, order
run       one run: overview, ranks, messages, settings, system, results
panes     ranks, messages and settings of a run
operation the results of a finished run as small plots
requests  what a person asks of a run: each asks first, each is recorded by the run
compare   two to four runs side by side
dialogs   questions, with buttons
starting  a run that is being started from here
manual    the keys and what the pictures mean
"""
