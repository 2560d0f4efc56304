"""The dossier: what a test lab runs again and reads, as one signed folder (docs/dossier.md).

`plan` names the steps and their parameters, `chance`, `games` and `software` run them, `work` keeps their results,
`clauses` maps clauses to functions and tests, `page` and `figures` show it, `bundle` hashes and signs it. A step that
did not run is reported as not run, never as passed.
"""
