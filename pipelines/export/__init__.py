"""A trained network as a model that other programs run, and the proof that they find the same."""
