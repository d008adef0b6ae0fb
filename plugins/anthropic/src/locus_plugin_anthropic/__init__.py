"""Anthropic's Messages API as a model provider, `anthropic:MODEL`."""
