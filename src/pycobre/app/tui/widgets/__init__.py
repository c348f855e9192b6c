"""Parts of a screen.

theme      colours: a dark and a light theme, told apart by colour-blind people too
rows       a widget that shows rows of text in roles; scrolling over many of them
plots      the pictures of a run: bounds, gap, time per iteration, LPs per second, cuts
facts      a run in figures, in as many columns as there is room
grid       small plots of quantile bands, a page of them at a time
trees      the system of a run as a tree
"""
