"""Exploring the design space: axes over any field, sweeps in bounded memory, plans."""
