"""Returns: exact ones as certificates state them, and measured ones against these (GL-27; UKGC live return monitoring;
docs/monitoring.md).

`certified` reads certificates; `distributions` has the exact distributions of what is watched; `figures` says what one
round adds; `evidence` tests counts against them; `tally` keeps the counts and says when to alarm. Integers are kept;
floats are made only to judge them. `certification.rtp` computes certificates.
"""
