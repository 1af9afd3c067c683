"""Organisations as processes: links over WebSocket, routes over HTTP, TLS and tokens. Knows no protocol by name.

    frames    messages <-> bytes
    tokens    the file of tokens, and the name that a token stands for
    tls       contexts of TLS, and where plain connections are allowed
    channels  one open connection, whichever side has opened it
    links     all connections of a member: connecting, waiting, gathering
    serving   a Starlette application in the running event loop; errors as JSON; limits of bodies
    process   a member with its links, routes and clock

Only commands that run organisations, and `leeward serve --http`, import this package: it needs starlette, uvicorn and
websockets.
"""
