"""Sources: where labelled examples of a group come from in a simulation."""
