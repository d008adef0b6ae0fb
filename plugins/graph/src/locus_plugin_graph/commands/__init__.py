"""``locus graph``; nothing here is imported by programs that use the library."""
