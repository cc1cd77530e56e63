"""The server: the same campaigns over HTTP.

`app.create_app(Settings(url))` is an ASGI application, which `evenhand serve` runs; `evenhand.connect` talks to it.

- `app`: puts the parts together; `settings`: what a server is started with; `running`: listens until it is told to stop.
- `access`, `tokens`: who may do what; `guarding`: hosts, cross-site posts, headers; `connections`, `incoming`, `parquet`:
  limits on slow clients, on heads and bodies, on what a file unpacks to.
- `api/`: the verbs of a campaign, one file a subject; `bodies`, `typed`: what comes in; `problems`: errors in one shape.
- `campaigns`: the campaigns that are open here; `worker`, `jobs`: fits, in a process of their own.
- `stream`: what is new, as it comes; `webhooks`, `addresses`: the same, sent to others; `watching`: what a server looks
  after by itself.
- `observing`: metrics and logs.
"""
