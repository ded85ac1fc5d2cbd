"""What `consumer dead` does: looking reads the index alone, and what takes letters out reads the queue."""
