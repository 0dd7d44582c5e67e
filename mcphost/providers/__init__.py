"""Language models behind one interface. They answer what they are asked; whether to ask is decided elsewhere."""
