"""Whole experiments: environments, policies and diagnostics put together."""
