"""What the benchmarks share.

catalogue   every benchmark by name
driver      runs a selection, each in a process of its own, and collects what they found
report      one page over all of it
document    what a benchmark hands over: tables, figures with their targets, curves
entry       the main program of a benchmark that hands over a document
cells       options and data of the benchmarks that print their own tables
machine     what the figures were measured on
timing      interleaved rounds and what they say
plots       curves and bars as pictures
compiled    interpreters that find their modules compiled
"""
