"""The browser sessions that tests share one after the other."""


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
