"""Measured returns against exact ones, for as long as a house plays (GL-27; UKGC live return monitoring;
docs/monitoring.md).

`laws` are the exact laws of what is watched, from the certificate; `figures` is what one round adds; `evidence` is how
much the counts speak against the laws, looked at as often as one likes; `tally` keeps the counts and says when it is
enough. Integers are kept, floats are only made to judge them.
"""
