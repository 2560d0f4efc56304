"""Checks a home before it serves: the command `rgs doctor` (docs/doctor.md).

Each module checks one subject and changes nothing. `rgs.node.doctor.findings` has the table of all findings.
"""
