"""Answers as people read them on a terminal; every function takes the JSON object that every door gives."""
