"""Resources and prompts: lists, forms, subscriptions."""
