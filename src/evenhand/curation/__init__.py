"""Curation: the rows of a labelled pool that serve the worst-off group best, and a page about them."""
