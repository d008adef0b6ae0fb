"""What pytest loads under the name `locus_testkit`."""
