"""The service of on-line sessions over sockets, and its Python client."""
