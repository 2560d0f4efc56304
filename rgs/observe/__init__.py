"""What all rooms need to be watched: histograms, the trace of a call, and the catalogue of metrics. No I/O, no clock.

It lies outside `rgs.core`, so that a change here is none of the certified software.
"""
