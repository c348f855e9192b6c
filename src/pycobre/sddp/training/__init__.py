"""Training a policy.

train · trainer     iterations                          backward · bound    cuts and the bound
backward_schedule   which trajectories make cuts for which nodes, depth by depth
walks               which paths an iteration walks: sampled ones, or every one
division            trajectories over the ranks, and what depends on their number
load_balancing      trajectories of one machine, taken by whichever of its ranks is free
stop_agreement      when to stop, agreed on by all ranks
running_clocks      seconds, LPs and memory of all ranks so far
log                 the history of a run, and its events
state · checkpoint · outcome                            what is kept, saved and returned
snapshot            the state of the last iteration, held on rank 0 for when no other can be asked
cut_log             the cuts of all checkpoints, in a file that grows by what is new
numerics            warnings about coefficient ranges, and about LPs that were hard to solve
"""
