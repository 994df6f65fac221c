"""From a dispatch to loop nests."""
