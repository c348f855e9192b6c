"""Using a policy.

simulate    scenarios under a policy                    recording   the columns that a simulation keeps
decision    the decision at one state and noise         validation  the cost of given paths
"""
