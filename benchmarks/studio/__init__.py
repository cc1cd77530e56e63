"""A Label Studio to try the connector with: `server` starts one, `people` use it, `story` is told and kept on `tape`."""
