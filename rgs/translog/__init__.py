"""The transparency log: from committed rows to tiles, bundles and signed, witnessed checkpoints."""
