"""What holds for every test."""

import signal

import torch
from hypothesis import settings

# A slow machine is not a fault: nothing here is tested by its time.
settings.register_profile("glasschat", deadline=None)
settings.load_profile("glasschat")

# The models of most tests are so small that sharing their work out costs more than the work.
torch.set_num_threads(1)

# A shell that runs them in the background has them ignore Ctrl-C, and some tests press it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
