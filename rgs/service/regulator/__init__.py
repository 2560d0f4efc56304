"""What the regulator's system is told beside play: played stages, each day's totals, the software that runs.

Knows the regulator's contract; when a session or participation is asked for is `rgs.service.play`'s to say.
"""
