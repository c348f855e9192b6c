"""Watching runs in a terminal: what is read, how it is drawn, what fills the screen, and lines where that cannot be.

reading   what is known of runs from their files alone; knows no terminal
drawing   pictures made of letters; knows no terminal either
widgets   parts of a screen
screens   what fills the terminal
app       the app: a stack of screens that are read again and again
launched  a run that is started from here, and does not depend on us
lines     lines of text where there is no terminal
session   which of these a command gets
"""
