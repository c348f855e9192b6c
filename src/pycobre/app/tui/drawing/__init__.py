"""Pictures made of letters: rows of text in named roles, which a theme gives colours to.

canvas  lines, points and areas in dots of braille letters
ticks   places and labels of an axis
plot    lines and bands over an axis, with labels and a legend
bars    horizontal bars: progress, where the time of each rank went
"""
