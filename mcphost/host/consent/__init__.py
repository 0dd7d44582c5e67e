"""Consent: policy, approvals, and questions to the user."""
