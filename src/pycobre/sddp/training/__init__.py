"""Training a policy.

train · trainer  iterations                         backward · bound  cuts and the bound
load_balancing   trajectories of one machine, taken by whichever rank is free
itinerary        the order in which nodes are visited
state · checkpoint · outcome                        what is kept, saved and handed back
numerics         the report of coefficient ranges
"""
