"""The metrics of a node: what is read at a scrape, and the port that serves it. `rgs.observe.catalogue` names them."""
