"""The reference operator: a small platform in front of the game server, as an outsider would write it.

It keeps players' accounts and money, protects players, serves the page, and carries the page's messages to the game
server (the bridge). It uses only the code that is generated from `protos/`. It is an example: it has no real payments,
no identity checks and no mail.
"""
