"""What is sent is sent whole and in order, and the end is heard."""

import socket
import threading

import pytest

from app.web.steady_socket import SteadySocket


@pytest.fixture
def pair():
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.create_connection(listener.getsockname())
    raw, _ = listener.accept()
    listener.close()
    other.settimeout(60)
    yield SteadySocket(raw), other
    raw.close()
    other.close()


def read_all(other):
    data = b""
    while piece := other.recv(2**16):
        data += piece
    return data


def test_what_is_sent_together_goes_out_at_the_end_and_in_order(pair):
    steady, other = pair
    with steady.together():
        steady.send(b"one ")
        steady.send(b"two")
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(10)
    other.settimeout(60)
    assert other.recv(100) == b"one two"


def test_a_send_is_whole_however_slowly_the_other_side_reads(pair):
    steady, other = pair
    data = bytes(range(256)) * 40_000
    sender = threading.Thread(target=lambda: (steady.send(data), steady.close()))
    sender.start()
    assert read_all(other) == data
    other.close()
    sender.join(60)


def test_two_threads_do_not_mix_what_they_send(pair):
    steady, other = pair
    frames = [bytes([letter]) * 300_000 for letter in b"abc"]
    senders = [threading.Thread(target=steady.send, args=(frame,)) for frame in frames]
    for sender in senders:
        sender.start()
    data = b""
    while len(data) < 900_000:
        data += other.recv(2**16)
    assert sorted(data[at:at + 300_000] for at in (0, 300_000, 600_000)) == frames


def test_the_last_words_are_heard_though_unread_data_waits(pair):
    steady, other = pair
    other.sendall(b"x" * 500_000)
    steady.send(b"goodbye")
    closing = threading.Thread(target=steady.close)
    closing.start()
    assert read_all(other) == b"goodbye"
    other.close()
    closing.join(60)


def test_nothing_more_is_read_while_too_much_waits(pair):
    steady, other = pair
    is_busy = threading.Event()
    is_busy.set()
    steady.is_busy = is_busy.is_set
    got = []
    reader = threading.Thread(target=lambda: got.append(steady.recv(10)))
    reader.start()
    other.sendall(b"more")
    reader.join(0.1)
    assert got == []
    is_busy.clear()
    reader.join(60)
    assert got == [b"more"]


def test_a_reader_that_waits_is_woken_by_the_end(pair):
    steady, other = pair
    got = []
    steady.is_busy = lambda: True
    reader = threading.Thread(target=lambda: got.append(steady.recv(10)))
    reader.start()
    steady.abort()
    reader.join(60)
    assert got == [b""]
