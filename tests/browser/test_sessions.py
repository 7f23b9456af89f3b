"""The browser sessions that tests share one after the other, and the address that their servers do."""

import socket
from contextlib import suppress
from urllib.parse import urlsplit
from urllib.request import urlopen


def test_a_session_that_is_used_again_has_nothing_of_the_test_before(serve, sessions):
    server, options = serve(), {"viewport": {"width": 700, "height": 700}}  # that no other test asks for
    session = sessions.take(server.url, options)
    page = session.new_page()
    page.goto(server.url + "/")
    page.evaluate("localStorage.setItem('left', 'behind')")
    assert session.cookies() != []
    session.set_offline(True)
    sessions.give_back(server.url, options, session)
    assert sessions.take(server.url, options) is session
    assert session.cookies() == [] and len(session.pages) == 1
    page = session.new_page()
    page.goto(server.url + "/")
    assert page.evaluate("localStorage.getItem('left')") is None
    sessions.give_back(server.url, options, session)


def test_a_connection_that_was_opened_and_not_used_is_no_way_to_a_stopped_server(serve):
    server = serve()
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port)) as connection:
        urlopen(server.url + "/healthz").close()  # by now the server has taken it
        server.restart()
        connection.settimeout(60)
        with suppress(OSError):  # it is closed
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(100) == b""
