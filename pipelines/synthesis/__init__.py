"""Small seeded data sets whose labels are exact by construction, for smoke runs and tests."""
