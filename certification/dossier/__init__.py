"""The dossier: what a test lab re-runs and reads, as one signed folder (docs/dossier.md).

`plan` names the steps and their parameters, `chance`, `games` and `software` run them, `work` keeps what they gave,
`clauses` maps clauses to functions and tests, `page` and `figures` show it, `bundle` hashes and signs it. Refuses to
judge better than a step did: what was not run is told as not run.
"""
