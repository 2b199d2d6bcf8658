"""The mathematics of costs and ranks; it does not use `Search`. Import the module you need."""
