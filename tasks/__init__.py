"""What one worker does to one block: plain functions over arrays and Arrow tables, with no cluster in sight."""
