"""`aeron-spark ui`: a page in the browser over what `live` reads, recordings, their messages and the doctor's findings.

`server` listens, `app` answers requests that `guard` lets pass, the others make the answers. `page/` has what the browser
loads. Nothing here writes.
"""

#: Where the page is, unless said otherwise.
LISTEN = "127.0.0.1:8321"
