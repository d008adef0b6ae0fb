"""How often claims are judged rightly as grounded or not: by the rules, and by rules and a judge.

`python -m contrib.bench.grounding` prints the table.
"""
