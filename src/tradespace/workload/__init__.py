"""From a model and a strategy to blocks of operators: the one description that FLOPs, traffic and memory come from."""
