"""Faults for `rgs doctor` to find."""
