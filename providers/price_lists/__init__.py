"""What providers with one list of machines and prices over REST share: the client, the rows, and the provider itself."""
