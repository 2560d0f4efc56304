"""An open store without services, and databases for tests."""
