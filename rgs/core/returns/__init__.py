"""Returns: exact ones as certificates state them, and measured ones against these (GL-27; UKGC live return monitoring;
docs/monitoring.md).

`certified` reads certificates; `distributions` are the exact distributions of what is watched; `figures` is what one
round adds; `evidence` is how much the counts speak against them, looked at as often as one likes; `tally` keeps the
counts and says when it is enough. Integers are kept, floats are only made to judge them. Nothing here computes a
certificate: that is `certification.rtp`.
"""
