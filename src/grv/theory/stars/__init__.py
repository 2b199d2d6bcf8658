"""Classes of concepts and their stars: how hard a class is to search."""
