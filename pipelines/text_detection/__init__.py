"""Text detection with DBNet as a task.

Importing the package imports no Paddle: targets, boxes and resize are numpy, so loader workers start fast.
"""
