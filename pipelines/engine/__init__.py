"""The accumulation step engine: knows no dataset and no model, only a Task and windows of micro-batches."""
