"""Events as they come: the newest in memory, and a subscription as bytes."""
