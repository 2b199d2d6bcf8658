"""What the backends that speak HTTP share: endpoints, addresses, secrets."""
