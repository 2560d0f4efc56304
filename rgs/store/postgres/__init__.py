"""The main store on PostgreSQL, shared by any number of processes: its connections, reads, commits and schema."""
