"""Tables that players share: configuration, seats, bets, windows and the state machine, as pure data and functions.

A table's state is a value; a step is data that the service commits. Here are no clock, no store and no stream
(docs/tables.md). What a table signs is in `rgs.core.tables.bodies`.
"""
