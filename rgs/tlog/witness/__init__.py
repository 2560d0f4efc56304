"""The witness: a program for an auditor or a regulator that cosigns a log's checkpoints and refuses a log that forks.

It imports no module of the log that it watches, and the log imports none of these.
"""
