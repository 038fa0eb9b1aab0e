"""Sources of machines and prices: one package per cloud, and owned machines."""
