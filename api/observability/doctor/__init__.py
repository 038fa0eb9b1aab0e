"""Diagnosis of the installation: what works, what is missing, and what to do."""
