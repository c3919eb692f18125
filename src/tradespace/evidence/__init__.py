"""Published measured runs beside predictions of them."""
