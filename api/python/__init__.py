"""The Python interface: what `import gpuplan` offers to notebooks and scripts, without a server."""
