"""SVG charts made on the server: they need no script, follow the reader's colour scheme, and print.

Every mark with information is reachable by keyboard and has a `<title>`; a table beside shows the same figures. Styles
are in the style sheet only; classes name the kind of an element.
"""
