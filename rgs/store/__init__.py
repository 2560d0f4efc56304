"""All SQL of the server: schema, migrations, the main store, the embedded wallet and the embedded regulator."""
