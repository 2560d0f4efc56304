"""For those who develop, integrate and try: demo, simulators, conformance checks, the terminal client, child processes.

The server never imports this. It talks to a server as strangers do, or puts one together from `rgs.node`.
"""
