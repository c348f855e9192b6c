"""Inflows, loads and available generation as random variables.

estimation · history · monthly_history · observed_inflows · periods  from records to a periodic autoregressive model
inflows · noise · tree · external · pinned · model from the model to openings
scenario_sampler · out_of_sample                   scenarios of the forward pass and of simulations
"""
