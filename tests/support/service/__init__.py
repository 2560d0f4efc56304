"""Every service over one folder, without a wire: the harness, its client, scripted peers, oracles."""
