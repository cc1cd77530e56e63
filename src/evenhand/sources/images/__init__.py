"""Images as sources: files, a store of decoded bytes, draws."""
