"""What a run looks like while it runs: text for people, one JSON line an event for programs."""
