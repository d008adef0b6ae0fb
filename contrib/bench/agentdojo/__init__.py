"""AgentDojo's attacks against a model that obeys every one of them: what is left is what the rules around it stop.

`python -m contrib.bench.agentdojo` measures; `tox -e agentdojo` does so in an environment of its own.
"""
