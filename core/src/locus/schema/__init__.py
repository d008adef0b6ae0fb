"""Schemas: from Python types to JSON Schema, and from plain data to checked values."""
