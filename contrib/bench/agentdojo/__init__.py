"""AgentDojo's attacks against a model that obeys every one of them, to measure the rules around the model.

`python -m contrib.bench.agentdojo` measures; `tox -e agentdojo` does so in an environment of its own.
"""
