"""The fifteen tests of NIST SP 800-22 Rev. 1a: 188 p-values of a sequence of bits, and the verdict over several.

Our own, in numpy, checked against NIST's C program 2.1.2 and the publication's examples (tests/vectors/sp800-22). The
constants are the corrected ones unless the C program's are asked for (`Variant`). NIST decided in 2022 to revise the
publication and not to use it for the assessment of cryptographic generators: it finds faults of an implementation,
and shows neither entropy nor unpredictability.
"""
