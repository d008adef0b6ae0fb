"""``locus workflow``; nothing here is imported by programs that use the library."""
