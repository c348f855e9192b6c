"""Random numbers and periodic autoregressive models.

streams · hashing · generators      keyed random numbers, independent of the order of the draws
openings · stratified               openings of a stage: Monte Carlo, Latin hypercube, Sobol and the like
correlation                         correlated noise of several series
linear_algebra                      small systems and symmetric roots in a fixed order of operations
par · fitting · annual              PAR(p) and PAR(p)-A models: residuals, and estimation from history
residual_tests · moments            whether residuals are noise; moments of the inflows that openings give
"""
