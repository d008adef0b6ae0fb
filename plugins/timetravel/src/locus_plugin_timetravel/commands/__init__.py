"""The commands that the plugin adds to ``locus threads``; nothing here is imported by programs that use the library."""
