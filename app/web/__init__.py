"""HTTP and WebSocket: thin doors to what `app.chat` does."""

from __future__ import annotations


def register(app) -> None:
    """Give the Flask application its pages, socket and rules. `app.extensions["glasschat"]` has the parts."""
    from app.web import api, health, pages, socket, transfers
    from app.web.access import init_access
    from app.web.errors import init_errors
    from app.web.json_bodies import init_json
    from app.web.languages import init_languages
    from app.web.proxy import init_proxy
    from app.web.sessions import init_sessions
    from app.web.static_files import init_static_files

    settings = app.extensions["glasschat"].settings
    init_static_files(app)
    init_languages(app)
    init_sessions(app, settings.data)
    init_access(app)
    init_errors(app)
    init_json(app)
    init_proxy(app, settings.prefix)
    for blueprint in (pages.blueprint, api.blueprint, transfers.blueprint, health.blueprint):
        app.register_blueprint(blueprint)
    app.config["SOCK_SERVER_OPTIONS"] = {"max_message_size": socket.MAX_FRAME_BYTES, "receive_bytes": 2**16}
    app.before_request(socket.prepare_socket)
    socket.sock.init_app(app)
