"""The web page of the service: rendered on the server, without content from other sites."""
