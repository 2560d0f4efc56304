"""Tests of the reference operator with a real game server, each a process of its own."""
