"""The page: what the service knows, for people with a browser; server-rendered, and nothing from elsewhere."""
