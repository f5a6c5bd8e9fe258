"""The only place that wires the parts together: one module a command, plain functions, no terminal."""
