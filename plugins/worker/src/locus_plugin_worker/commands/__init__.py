"""The commands; nothing here is imported by programs that use the library."""
