"""Results of a simulation as tables of plants, buses and lines, read from the LPs' solutions.

case_tables  all tables    stage_view  one stage's solutions    hydros  the plants' rows
indicators   load shed, water created, limits violated
inflow_tables  the inflow model, its fit to history, what its openings give
"""
