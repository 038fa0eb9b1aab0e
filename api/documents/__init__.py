"""The documents that users write, as models with a JSON schema, and what they become inside."""
