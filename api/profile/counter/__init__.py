"""The counter: runs in a process of its own under the interpreter that has torch, and needs nothing else.

It must work on Python 3.10 and torch 2.4 or newer, and import nothing of gpuplan.
"""
