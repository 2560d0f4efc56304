"""Reports as pages for people: templates over documents, pure. Refuses to compute anything that is not shown."""
