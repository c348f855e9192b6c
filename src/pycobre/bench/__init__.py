"""How fast it is, and compared with what: the benchmarks behind `pycobre bench`.

catalogue   every benchmark by name: those of this room, and the scripts of a checkout's `benchmarks/`
driver      runs a selection, each in a process of its own, and collects what they found
report      one page over all of it
document    what a benchmark hands over: tables, figures with their aims, curves
machine     what the figures were measured on
timing      interleaved rounds and what they say
plots       curves and bars as pictures

peer · peer_cases · peer_runs · peer_environment     training against the peer, end to end
run_start · run_workers · checkpoint · policy_load   a run from the call to the last file
cli_start · report_size                              the command line and the report
cluster · cluster_costs · cluster_model              larger machines, by a model with measured costs
"""
