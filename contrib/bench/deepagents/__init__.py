"""What deep agents cost, and deepagents' own examples written for both."""
