"""Tables that players share: seats and bets, the dealer that takes a table's steps, views, the lobby, chat, and what
admins do (docs/tables.md).
"""
