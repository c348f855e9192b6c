"""Answers about cases and runs, from their files: what planners ask, for Python, the command line and any server.

case_records · run_records · answer_records   what is answered, as plain values with their sources
names              plants, buses and stages by name or id
cases              which cases there are, what one is about, its findings, its schemas
case_differences   what changed between two cases      difference_words   the same in sentences
case_edits         a copy of a case with other values: preview, then write
run_index          the runs below a directory, by id
run_estimate       LPs, memory and time of a run before it starts
run_comparison     costs, prices, storage and deficits of two runs
significance       whether they differ by more than chance
failure            why a run stopped
convergence        whether a training has converged
run_tables         the tables of a run, names for their ids, digests
table_scan         a Parquet table piece by piece         grouping   aggregates by group
table_query        filter, group, aggregate, order
policy_values      water values, cost-to-go
scenario_replay    one scenario of a run solved again
stage_names        variables of a stage's LP by plant, bus or line
price              which plant or constraint sets a price
risk               deficits and empty reservoirs, how likely

Questions are answered by functions of plain arguments; they print nothing, and write only what `case_edits` is asked
to.
"""
