"""LangGraph's own examples, each written for both."""
