"""All SQL of the house: schema, migrations, the main store, the embedded wallet and the embedded register."""
