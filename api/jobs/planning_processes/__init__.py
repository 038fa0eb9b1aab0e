"""Planning processes of a service, with a limit of memory and time per request."""
