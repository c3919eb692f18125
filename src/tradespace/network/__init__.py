"""Groups on network dims, and what a collective costs there."""
