"""The chance of getting machines when they are asked for, and the order in which to try choices: the capacity ladder."""
