"""From records to windows of micro-batches: seeded order, shapes, augmentation, loader workers. No Paddle here."""
