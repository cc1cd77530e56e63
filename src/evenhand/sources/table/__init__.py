"""Tables as sources: reading, groups from columns, coded features, draws."""
