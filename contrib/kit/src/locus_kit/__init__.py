"""What plugins share: checks of settings, the parts of a judge's prompt, strict parsing of its answer.

Each module is imported by its own name, because a provider that checks its settings needs nothing of a judge.
"""
