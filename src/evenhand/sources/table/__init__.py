"""Tables as sources: reading, groups out of columns, coded features, draws."""
