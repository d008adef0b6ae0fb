"""What plugins share: checks of settings, parts of a judge's prompt, strict parsing of its answer, tools of others.

Each module is imported by its own name, because a provider that checks its settings needs nothing of a judge.
"""
