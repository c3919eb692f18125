"""Textbook algorithms of collectives, one file each, with one signature; `table` says which library has which."""
