"""The mathematics. It knows costs and ranks, not searches. Import the module you need."""
