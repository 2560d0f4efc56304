"""Tests of the packages in other languages, which `make sdk` builds."""
