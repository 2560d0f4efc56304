"""The witness: a program for an auditor or a regulator, who cosigns what a log shows and refuses a log that forks.

Apart from the log that it watches: imports no module of `rgs.tlog` beside its own.
"""
