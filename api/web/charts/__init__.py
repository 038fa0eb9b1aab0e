"""Charts as SVG made on the server: they need no script, follow the reader's colours, and print.

Every mark that says something can be reached by keyboard and has a `<title>`; the same figures stand in a table
beside. Nothing is styled inline: classes name what a thing is, the style sheet says how it looks.
"""
