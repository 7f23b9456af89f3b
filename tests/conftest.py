"""What holds for every test."""

from hypothesis import settings

# A slow machine is not a fault: nothing here is tested by its time.
settings.register_profile("glasschat", deadline=None)
settings.load_profile("glasschat")
