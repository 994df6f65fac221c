"""What dispatches take on this machine, measured: profiles, and rates learnt from them."""
