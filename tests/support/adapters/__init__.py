"""Embedded wallet and regulator, and simulators of both with a client."""
