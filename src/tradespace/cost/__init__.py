"""What operators and exchanges cost: compute time, memory footprint, overlap."""
