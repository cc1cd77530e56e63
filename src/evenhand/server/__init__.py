"""The server: the same campaigns over HTTP.

`app.create_app(Settings(url))` is an ASGI application, which `evenhand serve` runs; `evenhand.connect` talks to it.

- `app`: puts the parts together; `settings`: the settings of a server; `running`: listens until it is told to stop.
- `access`, `tokens`: who may do what; `guarding`: hosts, cross-site posts, headers; `connections`, `incoming`, `parquet`:
  limits on slow clients, on headers and bodies, on what a file unpacks to.
- `api/`: the verbs of a campaign, one file per subject; `bodies`, `typed`: what comes in; `problems`: errors as JSON.
- `campaigns`: the campaigns that are open here; `worker`, `jobs`: fits, in separate processes.
- `stream`: new events as they come; `webhooks`, `addresses`: events sent to other servers; `watching`: what a server
  does by itself.
- `observing`: metrics and logs.
"""
