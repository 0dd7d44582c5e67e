"""What a call or a reading returned, block by block."""
