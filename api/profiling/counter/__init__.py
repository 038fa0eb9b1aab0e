"""The counter. It runs in its own process under an interpreter with torch, without other dependencies.

It must work on Python 3.10 and torch 2.4 or newer, and must not import gpuplan.
"""
