"""Who may do what: policy, approvals, questions to the user."""
