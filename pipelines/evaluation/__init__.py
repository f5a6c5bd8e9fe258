"""Metrics: numpy and shapely only, so that workers and tests need no Paddle."""
