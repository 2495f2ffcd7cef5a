"""Decisions without side effects: comparisons of listings, manifests and signature trees, and what to ask for
next."""
