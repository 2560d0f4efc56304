"""Reports to the regulator outside play: played stages, each day's totals, the running software.

Knows the regulator's contract. `rgs.service.play` decides when it asks for a session or a participation.
"""
