"""Text of the JSON of answers that has a meaning: money and times."""

#: US dollars as a decimal string.
type Usd = str
#: ISO 8601 with its zone.
type Moment = str
