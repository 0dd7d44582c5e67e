"""The OAuth flow as generators of steps: what to fetch, ask and open next.

Nothing here waits, fetches, asks or keeps anything. A flow yields a step and is sent its outcome; it may be closed at
any point.
"""
