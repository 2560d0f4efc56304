"""The generator as a process of its own: its wire, the process, and its client in the server (docs/generator.md)."""
