"""The stage LP of a hydrothermal system.

stage_lp  all of it, in order                   stage_builder · lp  rows and columns by name
water · rivers · travel · evaporation · period_step · filling  reservoirs and rivers
power · turbines · anticipated                  loads, exchanges, and what plants generate
production · planes · plane_reduction · tailrace  from water to power
boundary  the cost beyond the last stage
generic   constraints given as expressions      index · penalties · overrides · resolve  a stage's data
"""
