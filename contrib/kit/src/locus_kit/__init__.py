"""What plugins share: checks of settings, what judges need, tools of others, retention of threads, stores.

Each module is imported by its own name, because a provider that checks its settings needs nothing of a judge.
"""
